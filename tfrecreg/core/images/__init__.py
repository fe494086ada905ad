"""Images as bytes: their headers, their pixels, and the drawings over them; charts of pages.

Used by sources, which store images unchanged, and by code that checks or shows records. Reading
headers needs neither Pillow nor TensorFlow and decodes no pixels. For any bytes it returns a result
or raises :class:`ImageError`. Decoding most formats needs Pillow.
"""
