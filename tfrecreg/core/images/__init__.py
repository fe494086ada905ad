"""Images as bytes: their formats and headers.

For sources, which store images unchanged, and for code that checks records. It works without Pillow
and TensorFlow, does not decode pixels, never reads past the end, and for any bytes returns a result
or raises :class:`ImageError`.

- `model`: :class:`ImageHeader`, the content of a header; :class:`ImageError`, why it cannot be read
- `sniff`: the format by the first bytes, and the first bytes of other known files
- `read`: :func:`read_header`, :func:`is_truncated` and the text of its remark, for the five formats
- `jpeg`, `png`, `gif`, `webp`, `bmp`: one format each
- `decodable`: images that TensorFlow's decoders refuse
- `decoder`: decoding of pixels by Pillow, with limits, for checks and conversions
- `pixels`: decoding for training, by Pillow
- `png_pixels`: the same for batches of small PNGs, by zlib and NumPy
"""
