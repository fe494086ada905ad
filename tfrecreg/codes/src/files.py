"""``SRC001`` to ``SRC019``: items, picture files, and what is built from them."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = [
    "SRC001",
    "SRC002",
    "SRC003",
    "SRC004",
    "SRC005",
    "SRC006",
    "SRC007",
    "SRC008",
    "SRC009",
    "SRC010",
    "SRC011",
    "SRC012",
    "SRC013",
    "SRC014",
    "SRC015",
    "SRC016",
    "SRC017",
    "SRC018",
    "SRC019",
]

SRC001 = Code(
    "SRC001",
    "source-skipped",
    Severity.WARNING,
    "The source skipped an item",
    "see `ledger.jsonl` in the build for every item and its reason",
    """\
The source looked at an item of the raw data and made no example of it. Every such item stands in
the build's `ledger.jsonl` with the reason; the manifest counts them, and a build fails when there
are more than `--max-skipped` (by default none).
""",
)

SRC002 = Code(
    "SRC002",
    "picture-empty",
    Severity.WARNING,
    "A picture file has no bytes",
    "fetch the file again, or remove it; or accept the loss with `--max-skipped`",
    """\
A file of 0 bytes is what a download leaves that never began, or a disk that was full. There is
nothing to train on in it, so the item is skipped.
""",
)

SRC003 = Code(
    "SRC003",
    "picture-unknown-format",
    Severity.WARNING,
    "A file is no JPEG, PNG, GIF, WebP or BMP",
    "convert it, remove it, or name the extensions to take with `--option extensions=`",
    """\
The format of a picture is told by its first bytes; the name of the file has no say, so a PNG
called `.jpg` goes in as the PNG that it is. Files of other formats, which TensorFlow does not
decode, and files that are no pictures at all are skipped; the ledger says what they seem to be.
An HTML page in place of a picture is a download that failed, a pointer of git-lfs a clone without
its files.
""",
)

SRC004 = Code(
    "SRC004",
    "picture-header-cut",
    Severity.WARNING,
    "A picture ends before its header is complete",
    "fetch the file again, or remove it; or accept the loss with `--max-skipped`",
    """\
The file begins as a picture does and ends before it says how large the picture is. A picture whose
header is whole and whose pixels are cut short is written all the same, because decoders differ in
what they make of it; `verify=decode` skips those as well (SRC008).
""",
)

SRC005 = Code(
    "SRC005",
    "picture-header-damaged",
    Severity.WARNING,
    "A picture has a header that makes no sense",
    "fetch the file again, or remove it; or accept the loss with `--max-skipped`",
    """\
The header has a wrong checksum, lengths that do not fit, or values that the format does not have.
No decoder could rely on it, so the item is skipped.
""",
)

SRC006 = Code(
    "SRC006",
    "picture-without-pixels",
    Severity.WARNING,
    "A picture is 0 pixels wide or high",
    "fetch the file again, or remove it; or accept the loss with `--max-skipped`",
    """\
The header says that the picture has no pixels. Decoders refuse it, and so does a schema that asks
for a height and width of at least 1.
""",
)

SRC007 = Code(
    "SRC007",
    "picture-unsupported",
    Severity.WARNING,
    "A picture is of a kind that common decoders do not read, or too large for a record",
    "convert it, or accept the loss with `--max-skipped`",
    """\
Some kinds share the first bytes of a known format and little else: JPEG-LS, Apple's own PNG (CgBI),
a BMP that holds a JPEG. A file of more than 1 GiB does not go into a record either.
""",
)

SRC008 = Code(
    "SRC008",
    "picture-undecodable",
    Severity.WARNING,
    "A picture does not decode",
    "fetch the file again, or remove it; or leave `verify` at `header`",
    """\
With `verify=decode`, `resize` or `reencode` every picture is decoded to its last pixel, by Pillow,
in a process of its own. This one did not decode: it is cut short, damaged, or of a kind that Pillow
does not read (lossless JPEG of 12 or 16 bits, for one).
""",
)

SRC009 = Code(
    "SRC009",
    "picture-too-costly",
    Severity.WARNING,
    "A picture took more memory or time to decode than it may, or ended the decoder",
    "look at the file with suspicion: few bytes that decode to very many pixels are an attack",
    """\
Pictures are decoded in a process that may use so much memory and so much time, and no more, so
that a decompression bomb or a fault of a decoder costs one line in the ledger and not the build.
This picture exceeded a limit, or the process died over it.
""",
)

SRC010 = Code(
    "SRC010",
    "not-a-file",
    Severity.WARNING,
    "What lies in the place of a picture is no regular file",
    "remove it: it is a FIFO, a socket or a device, which are never opened",
    """\
Opening a FIFO waits for somebody to write to it, and opening a device may do anything. Neither is
ever opened; the item is skipped.
""",
)

SRC011 = Code(
    "SRC011",
    "link-not-followed",
    Severity.WARNING,
    "A symbolic link in the place of a picture or folder is not followed",
    "correct the link, or bring what it leads to: `dvc checkout` or `dvc pull` for DVC's cache",
    """\
The link leads nowhere or in a circle, or an option forbids to follow it. Otherwise links are
followed wherever they lead, as into DVC's cache. With `symlinks=inside` the source `imagefolder`
follows those that stay in the raw folder, for raw data that may come with links to anything on the
machine; with `symlinks=none` it follows none.
""",
)

SRC012 = Code(
    "SRC012",
    "name-not-utf8",
    Severity.WARNING,
    "The name of a file is not UTF-8",
    "rename the file: `convmv -f latin1 -t utf-8 --notest` does it for a whole folder",
    """\
Manifests, indexes and labels are UTF-8. A name that is not could be written into them only as
another one, and the record would then be known by a key that no raw file has.
""",
)

SRC013 = Code(
    "SRC013",
    "label-line-unusable",
    Severity.WARNING,
    "A line of the label file has no picture or no label",
    "bring the picture, complete the line, or take it out of the label file",
    """\
Every line of a label file is an item. This one lacks its file or its label, or it names a file that
is not in the folder, is hidden, or could be any of several that differ by their extension.
""",
)

SRC014 = Code(
    "SRC014",
    "picture-cut-short",
    Severity.WARNING,
    "A picture ends before its end, and was written as it is",
    "fetch the file again; `verify=decode` skips such pictures",
    """\
A remark, no loss: the header is sound, and the end is not there (a JPEG without its end marker, a
PNG without IEND, fewer bytes than a WebP or BMP announces). A source passes bytes through, and
decoders differ in what they make of such a picture: some fail, some fill the rest with grey. The
manifest counts these remarks and `ledger.jsonl` lists them.
""",
)

SRC015 = Code(
    "SRC015",
    "names-left-out",
    Severity.WARNING,
    "Hidden or stray names lie among the raw data and are no items",
    "nothing needs to be done, unless they were meant to be pictures",
    """\
A remark, no loss. Hidden are names that begin with a dot and what systems leave in folders
(`Thumbs.db`, `desktop.ini`, `__MACOSX`). Stray are files beside class folders, files that a label
file does not name, and files whose extension is not among those asked for. They are counted, so
that a folder that was laid out otherwise than expected does not go unseen.
""",
)

SRC016 = Code(
    "SRC016",
    "picture-bytes-differ",
    Severity.ERROR,
    "The bytes of a picture are not those that its record was made with",
    "build the dataset again from its raw data; whatever changed the record kept its checksums",
    """\
`image/key/sha256` is the SHA-256 of the bytes in `image/encoded`, noted when the record was made.
They no longer agree although the record's own checksums hold, so somebody wrote the record anew:
a tool that re-encoded the pictures, or a source that does not do what it says.
""",
)

SRC017 = Code(
    "SRC017",
    "raw-bytes-differ",
    Severity.ERROR,
    "A record's picture is not the raw file that its key names",
    "the raw data changed, or are other data: name the right folder, or build again",
    """\
With `check --raw PATH` each picture is compared with the raw file that it was made from. Here they
differ, byte for byte.
""",
)

SRC018 = Code(
    "SRC018",
    "raw-file-missing",
    Severity.ERROR,
    "The raw file of a record is not there",
    "bring the raw data back, or name the folder that the dataset was built from",
    """\
With `check --raw PATH` each picture is compared with the raw file that it was made from. For this
record there is none at its place.
""",
)

SRC019 = Code(
    "SRC019",
    "ledger-disagrees",
    Severity.ERROR,
    "The ledger does not account for the records that are there",
    "a shard was changed, or the manifest was: restore both from DVC, or build again",
    """\
The manifest's ledger says how many items were written and how many were skipped, split by split.
The records in the shards, counted again, and the lines of `ledger.jsonl` have to agree with it,
and items must be the sum of both.
""",
)
