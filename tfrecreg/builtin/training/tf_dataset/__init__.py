"""Graphs of `tf.data` for :func:`tfrecreg.load`. All modules but `form` import TensorFlow."""
