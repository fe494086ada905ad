"""``INF``: size inflation, its causes and its cures."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = ["INF001", "INF002", "INF003", "INF004", "INF005", "INF006", "INF007"]

INF001 = Code(
    "INF001",
    "inflated",
    Severity.ERROR,
    "The dataset is larger than its raw data allow",
    "see the bytes per feature above: keep pictures encoded, numbers narrow, and each byte once",
    """\
The shards are larger than `ratio × raw bytes + allowance × records` (by default 1.10 and 512
bytes, on the decoded base). Image sets that are decoded on the way in grow about tenfold: people
report 30 GB of JPEG that became 280 GB of TFRecord.

Two bases are always measured and shown. *stored* is the raw files as they lie; *decoded* is the
same with whole-file compression taken off, the IDX inside the gzip. The limit is judged on one of
them: set `base`, `ratio` and `allowance` under `[gates.default.limits.inflation]` in
`tfrecreg.toml`. The allowance is there so that tiny records may carry their keys.

What makes them so is told by the other codes of this family, where it is one of these.
""",
)

INF002 = Code(
    "INF002",
    "decoded-pixels",
    Severity.WARNING,
    "Pixels are stored decoded, where encoded pictures would be far smaller",
    "store the bytes of the picture file and decode while reading: `tf.io.decode_image`",
    """\
A feature holds the pixels of a picture: as many bytes or numbers as its height, width and channels
make, whether as bytes, base64, gzip, `.npy`, BMP, a serialised tensor, floats or integers. Floats
may be scaled, have mean and deviation taken off, or come from resizing: then they have to go up and
down as pixels do. The sides are those that features such as `image/height` declare, or the array's
own; without them a square is thought of, where the feature's name sounds like a picture.

Where the size of the raw data is known, it is a finding only if the pixels are larger than these
are, and the size after the cure is that of the raw data: files go in as they lie, and a decoder of
JPEG is quicker than a disk that has to deliver ten times the bytes. Without raw data some pictures
of each shard are encoded as PNG, and the rest is taken to be like them; a JPEG would be smaller
still. A cause is told if the cure saves a tenth of all bytes and at least 64 KiB.
""",
)

INF003 = Code(
    "INF003",
    "wide-numbers",
    Severity.WARNING,
    "Numbers take more bytes than they need",
    "store them as bytes of a narrow type, and widen while reading: `tf.io.decode_raw`, `tf.cast`",
    """\
A `tf.train.Example` knows two kinds of numbers: a float takes 4 bytes, an integer 1 to 10, negative
ones always 10. Numbers that come from bytes, such as pixels divided by 255, lie on at most 256
evenly spaced levels, and fit in a byte each; so do whole numbers from 0 to 255, and others in the
type that the message names. Serialised tensors and raw bytes of wide types are looked at as well.

This is told from some records of each shard, so look at the range of all of them before you choose
a type. In a bytes feature numbers lie side by side: `array.astype(np.uint8).tobytes()`, read again
by `tf.io.decode_raw(feature, tf.uint8)`, and scaled in the input pipeline, where it costs nothing.
""",
)

INF004 = Code(
    "INF004",
    "stored-again",
    Severity.WARNING,
    "The same bytes are stored again and again",
    "write one record a picture, with a list for each of its annotations",
    """\
A large value, mostly a picture, is in many records: a recipe wrote a record for each annotation,
each caption, each question. TensorFlow's features are lists, so that one record can have all
annotations of a picture, and `dataset.flat_map` makes single ones of them while reading.

How much is stored again is counted over 1,024 different values, chosen by their digests, and is
exact where there are no more. Values of less than 1 KiB are not looked at.
""",
)

INF005 = Code(
    "INF005",
    "re-encoded-larger",
    Severity.WARNING,
    "Pictures were encoded anew, and are larger than the raw data",
    "store the bytes of the file as they are; re-encode only what a decoder cannot read",
    """\
The encoded pictures in the records are larger than all of the raw data: JPEGs were decoded and
written as PNG, or as JPEG of a higher quality. That adds bytes and no information, for what the
first encoding lost is lost; a PNG of a photograph takes three to ten times the JPEG it came from.

Known only where the size of the raw data is: a build remembers it, and `check --raw` measures it.
""",
)

INF006 = Code(
    "INF006",
    "overhead-dominates",
    Severity.INFO,
    "Names, lengths and framing take more bytes than the values",
    "shorten names, leave out constant features, put many examples into one record, or use gzip",
    """\
Each record has 16 bytes of framing, and each feature its name and some lengths, again in every
record: about 30 bytes for a number of one byte. Where records are tiny, that is most of the data,
and reading them costs by the record, not by the byte.

A list for each feature with the values of 64 examples, and `dataset.unbatch()` while reading, leave
next to nothing of it. So does `--compression gzip`, as names repeat. Names can be shorter, and what
is the same in all records belongs into the dataset's description.
""",
)

INF007 = Code(
    "INF007",
    "pictures-as-base64",
    Severity.WARNING,
    "Encoded pictures are stored as base64, a third larger than their bytes",
    "store the bytes: `base64.b64decode` before writing; features of bytes hold any",
    """\
Text formats such as JSON hold no bytes, so pictures travel through them as base64: four letters for
three bytes. A feature of a record holds bytes as they are, so that nothing has to be encoded, and
`tf.io.decode_image` reads them without `tf.io.decode_base64` before.

Told by the first letters, which are those that the beginning of a JPEG, PNG, GIF, WebP or BMP
gives, and from 16 KiB on that could be saved. Pixels as base64 are INF002.
""",
)
