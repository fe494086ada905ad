"""``CRC``: framing and checksums of TFRecord files."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity
from tfrecreg.findings import TensorflowOutcome as Outcome

__all__ = [
    "CRC001",
    "CRC002",
    "CRC003",
    "CRC004",
    "CRC005",
    "CRC006",
    "CRC007",
    "CRC008",
    "CRC009",
]

_RESTORE = "restore the shard from DVC or a backup, or build it again from the raw data"

CRC001 = Code(
    "CRC001",
    "length-checksum",
    Severity.ERROR,
    "The checksum over a record's length does not hold",
    _RESTORE,
    """\
A record starts with its length (8 bytes) and the masked CRC32C of those 8 bytes. They disagree,
so either the length or its checksum was damaged: a flipped bit, an overwritten block, a file
written by something that is no TFRecord writer.

TensorFlow stops at such a record with `DataLossError: corrupted record at N`, names no file, and
everything behind it in the shard is lost to the training job; with `ignore_errors` it is lost
without a word. tfrecreg looks for the next record whose checksums both hold, so records behind
the damage are still checked and counted. Where the record's data checksum shows that the payload
itself is intact, the detail of the location says so.
""",
    tensorflow=(Outcome.STOPS,),
)

CRC002 = Code(
    "CRC002",
    "data-checksum",
    Severity.ERROR,
    "The checksum over a record's data does not hold",
    _RESTORE,
    """\
Behind a record's data stands the masked CRC32C of the data. They disagree: a byte of the payload,
or of its checksum, was damaged after it was written. The length is sound, so the next record is
found and checked as usual.

TensorFlow stops at it with `DataLossError: corrupted record at N`, where N is the record's offset
plus 12. `Dataset.skip(n)` reads over it without looking at the data checksum.
""",
    tensorflow=(Outcome.STOPS,),
)

CRC003 = Code(
    "CRC003",
    "truncated",
    Severity.ERROR,
    "The file ends inside a record",
    _RESTORE,
    """\
The last record says how long it is, and the file ends before that: a copy that was interrupted, a
full disk, a writer that was killed.

TensorFlow reports this only where the header is whole. A cut that leaves 1 to 11 bytes of a header
reads as a normal end of the file, and the job trains on less data than it thinks. A cut exactly
between two records is beyond any reader of the bare file: with a manifest or an index it is found
(SHD002, SHD003).
""",
    tensorflow=(Outcome.STOPS,),
)

CRC004 = Code(
    "CRC004",
    "trailing-bytes",
    Severity.ERROR,
    "Bytes behind the last record begin no record",
    _RESTORE,
    """\
Behind the last whole record there are bytes that cannot be the start of another one: fewer than
the 12 bytes of a header, or padding. Either something was appended to the file, or a header was
cut short.

TensorFlow takes up to 11 such bytes for the end of the file, without a word. At 12 or more it
looks for a header, finds none and stops, having delivered all records.
""",
    tensorflow=(Outcome.READS, Outcome.STOPS),
)

CRC005 = Code(
    "CRC005",
    "impossible-length",
    Severity.ERROR,
    "A record claims a length that no record has",
    "do not read this file with TensorFlow: it may crash; get a new copy from where it came from",
    """\
The header's checksum holds, and the length is above 2^31 bytes, which no writer of
`tf.train.Example` can produce (protobuf ends at 2 GiB). This is a crafted file or a bug in the
tool that wrote it.

TensorFlow allocates what the header of a plain file asks for before it reads: one of 78 bytes that
claims 2^40 makes it crash, and makes Beam raise MemoryError. Below the memory of the machine
(taken to be 2^35 bytes), above 2^63 and in gzip it stops with an error; and where the record is
really there, it is read. tfrecreg bounds every length by the file first.
""",
    tensorflow=(Outcome.CRASHES, Outcome.STOPS, Outcome.READS),
)

CRC006 = Code(
    "CRC006",
    "compression-mismatch",
    Severity.ERROR,
    "The compression is not what was declared",
    "read it with the compression that it has, or build the dataset again",
    """\
The manifest declares one compression and the bytes are of another. tfrecreg looks at the first
bytes of the stream, never at the file's suffix, and goes on to check what is really there. Bare
files declare nothing, but all of one set are read in one go: there, those are found that are not
compressed as most of the set are.

TensorFlow has to be told the compression. Told the wrong one, it says `corrupted record at 0` for
gzip read as plain, or a zlib error for plain read as gzip.
""",
    tensorflow=(Outcome.STOPS, Outcome.READS),
)

CRC007 = Code(
    "CRC007",
    "damaged-gzip",
    Severity.ERROR,
    "The gzip stream is damaged",
    _RESTORE,
    """\
The deflate stream does not decode, or the trailer of a gzip member (CRC-32 and length) does not
match what was decoded, or there is something behind the last member that is no member: garbage,
or the zeros that `gzip` itself passes over, and TensorFlow does not. Records that decoded before
the damage are checked as usual; a dataset that tfrecreg compressed has a new member about every
MiB, so damage costs little.

TensorFlow takes a cut for the end of the file wherever fewer than the 12 bytes of a header have
been decoded behind the last whole record: then records are lost without an error, and so is a
trailer that is cut. A single bit in the flags of a header can make it skip the whole member.
""",
    tensorflow=(Outcome.STOPS, Outcome.READS),
)

CRC008 = Code(
    "CRC008",
    "not-tfrecord",
    Severity.ERROR,
    "The file is not a TFRecord",
    "check what the file is: text, a git-LFS pointer and other formats are common under this name",
    """\
The first header's checksum does not hold and there is not one valid record in the whole file. It
is something else under this name: text, a git-LFS pointer (`git lfs pull` fetches the file), an
ArrayRecord, an archive. When this is found nothing else is said of the file.

TensorFlow stops at byte 0, unless there are fewer than the 12 bytes of a header: such a file it
takes for an empty one.
""",
    tensorflow=(Outcome.STOPS, Outcome.READS),
)

CRC009 = Code(
    "CRC009",
    "gzip-misread",
    Severity.ERROR,
    "The gzip stream is sound, and TensorFlow loses the end of it",
    "`tfrecreg salvage` writes a copy that TensorFlow reads whole; or write it as one gzip member",
    """\
gzip files may have many members, and the format is kept: `gzip`, Python and tfrecreg read this file
to its end. TensorFlow (seen with 2.16) does not: where a call of zlib makes nothing it reads on in
the file, and where the file has no more to read it ends there, although its input buffer holds
members that are still to come. That is so behind an empty member, and where a member ends within
about ten bytes behind a multiple of the buffer's size, 256 KiB, and no more than a buffer's size
of the file follows. Concatenated `bgzip` files have empty members, and of other files with small
members one in some hundreds ends so.

The records behind that place are missing from training, and nobody is told. A `buffer_size` that is
given to `TFRecordDataset` moves the place, to where other files have theirs.
""",
    tensorflow=(Outcome.READS, Outcome.STOPS),
)
