"""Images as bytes: their formats and headers.

Used by sources, which store images unchanged, and by code that checks records. Reading headers
needs neither Pillow nor TensorFlow and decodes no pixels. For any bytes it returns a result or
raises :class:`ImageError`.
"""
