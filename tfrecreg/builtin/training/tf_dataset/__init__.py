"""Graphs of `tf.data` for :func:`tfrecreg.load`. None of these modules imports TensorFlow."""
