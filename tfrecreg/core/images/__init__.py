"""Images as bytes: their formats and headers.

For sources, which store images unchanged, and for code that checks records. It works without Pillow
and TensorFlow, does not decode pixels, never reads past the end, and for any bytes returns a result
or raises :class:`ImageError`.
"""
