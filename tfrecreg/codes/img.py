"""``IMG``: encoded pictures."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = ["IMG001", "IMG002", "IMG003", "IMG004", "IMG005", "IMG006", "IMG007"]

IMG001 = Code(
    "IMG001",
    "format-declared-wrong",
    Severity.WARNING,
    "A picture has another format than its record declares",
    "write the format that the picture begins with, whatever its file was called",
    """\
`image/format` says one format, and the first bytes of `image/encoded` another. `tf.io.decode_image`
looks at the bytes and does not mind; `decode_jpeg` and `decode_png` chosen by the declared format
fail, or decode with other options. Files are often named after a format that they never had, so
a format that was taken from a name is a guess. `jpg` and `jpeg`, in whatever case, are the same.
""",
)

IMG002 = Code(
    "IMG002",
    "sides-declared-wrong",
    Severity.WARNING,
    "A picture has other sides than its record declares",
    "write what the picture's header says, and look whether boxes were made for other sides",
    """\
`image/height` or `image/width` is not what the header of the picture says. Whoever allocates,
filters, or scales boxes by the declared sides works with another picture. Sides that are exchanged
were mostly read behind an EXIF orientation, which TensorFlow's decoders do not apply; others are
those of the picture before it was resized.
""",
)

IMG003 = Code(
    "IMG003",
    "channels-declared-wrong",
    Severity.WARNING,
    "A picture has another number of channels than its record declares",
    "write what the picture has, or decode with `channels=3` where all should have as many",
    """\
`image/channels` is not what the header says: grey pictures among coloured ones, PNGs with
transparency, JPEGs in CMYK. Batches of pictures with different numbers of channels fail. Pictures
with a palette count as having 3, and may be declared as 1, 3 or 4.
""",
)

IMG004 = Code(
    "IMG004",
    "picture-damaged",
    Severity.ERROR,
    "A picture is none of a known format, is damaged at its beginning, or is cut",
    "bring the picture again and build anew, or leave it out",
    """\
The header is read without decoding a pixel: the bytes are no JPEG, PNG, GIF, WebP or BMP (the place
says what they seem to be), are empty, or have a header that is cut or makes no sense. Found as well
are pictures with a sound header that end before their end, as downloads do that were interrupted:
some decoders fail on them, some fill the rest with grey.

Damage further inside is only seen by decoding: IMG005.
""",
)

IMG005 = Code(
    "IMG005",
    "undecodable",
    Severity.ERROR,
    "A picture does not decode to its last pixel",
    "bring the picture again and build anew, or leave it out",
    """\
With the option `decode = true` of `limits.images` every pixel of every frame is decoded by Pillow,
in a process of its own with limits of memory and time, so that whatever a picture does costs one
finding. It takes as long as decoding takes. A picture that decodes to other sides than its header
says is found as well. Pillow is stricter here than TensorFlow in some things, such as checksums of
PNG, and knows formats that TensorFlow does not, such as WebP.
""",
)

IMG006 = Code(
    "IMG006",
    "picture-too-large",
    Severity.ERROR,
    "A picture decodes to more than it may: too many pixels, too much memory or time",
    "leave it out or resize it; where such pictures are meant, raise `max_pixels`",
    """\
A few kilobytes can decode to gigabytes: a decompression bomb, or a scan that nobody resized. It
stops a training job for want of memory, whenever the shuffle gets to it. The header says how many
pixels there are; more than `max_pixels` of `limits.images` (2^28, that is 268 million) are too
many. With `decode = true` found are those as well that take more than 2 GiB or a minute.
""",
)

IMG007 = Code(
    "IMG007",
    "not-for-tensorflow",
    Severity.WARNING,
    "Pillow reads a picture, and TensorFlow's decoders do not, or not as it is",
    "convert it before the build (`--option reencode=png`), or decode it with Pillow while reading",
    """\
`tf.io.decode_image` reads JPEG, PNG, GIF and some kinds of BMP. It refuses WebP, BMP that is packed
by run length, has the header of OS/2 or 1, 4 or 16 bits a pixel, and JPEG that is lossless,
hierarchical or of 12 bits a sample; the error names no record. Of a BMP with a palette it gives the
numbers of the colours, and no error. All of these decode with Pillow, and so with PyTorch.

The header tells it, so nothing is decoded. Where nobody reads the records with TensorFlow, lower
the severity: `severity = { IMG007 = "info" }` in the gate.
""",
)
