"""Images as bytes: their formats and headers.

For sources, which store images unchanged, and for code that checks records. Reading headers needs
neither Pillow nor TensorFlow and decodes no pixels. For any bytes it returns a result or raises
:class:`ImageError`.
"""
