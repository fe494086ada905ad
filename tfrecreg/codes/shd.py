"""``SHD``: shard sets and the manifest that describes them."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity
from tfrecreg.findings import TensorflowOutcome as Outcome

__all__ = ["SHD001", "SHD002", "SHD003", "SHD004", "SHD005", "SHD006", "SHD007", "SHD008", "SHD009"]

_RESTORE = "restore the file from DVC or a backup, or build the dataset again"

SHD001 = Code(
    "SHD001",
    "missing-shard",
    Severity.ERROR,
    "A shard or another file of the dataset is missing",
    _RESTORE,
    """\
The manifest lists a file that is not there, or the names of a set of bare files (`00002-of-00005`)
say that there should be more of them. A glob in a training script matches what exists, so a
missing shard is simply less data: no reader can notice it without knowing the set.
""",
    tensorflow=(Outcome.READS,),
)

SHD002 = Code(
    "SHD002",
    "digest-differs",
    Severity.ERROR,
    "A file's bytes are not those that the manifest names",
    _RESTORE,
    """\
The file's size or its blake3 differs from the manifest, and no checksum of a record explains it:
the file was replaced by another valid one, cut exactly between two records, or written again by
another tool. DVC and git look at their own records of a file, not at its bytes: after a bit flips
in DVC's cache `dvc status` says that all is well.

Where a `CRC` finding already names the damage in a shard this one is not repeated. Without the
validator `crc` it stands alone, and says what TensorFlow does at the first damage.
""",
    tensorflow=(Outcome.READS, Outcome.STOPS, Outcome.CRASHES),
)

SHD003 = Code(
    "SHD003",
    "record-count",
    Severity.ERROR,
    "A shard holds another number of records than it should",
    _RESTORE,
    """\
The manifest says how many records a shard has, and so does the name of some files
(`train00-2071.tfrec`). A shard that was cut between two records, or emptied, reads without an
error everywhere: only the count tells.
""",
    tensorflow=(Outcome.READS,),
)

SHD004 = Code(
    "SHD004",
    "swapped-shard",
    Severity.ERROR,
    "A shard's bytes are those of another shard",
    "put the files back under their own names, or build the dataset again",
    """\
The bytes under this name are, by their digest, another shard of the same dataset: two files were
swapped, or one was copied over another. Every checksum in them holds. A swap between splits trains
on test data; a copy shows some examples twice and others never.
""",
    tensorflow=(Outcome.READS,),
)

SHD005 = Code(
    "SHD005",
    "unlisted-file",
    Severity.ERROR,
    "A file lies in the dataset's folder that the manifest does not list",
    "remove the file, or build the dataset again if it belongs there",
    """\
A training script that reads `data/<name>/*` reads this file as well. Shards left over from an
earlier build with another shard count are the usual case: the same examples twice.
""",
    tensorflow=(Outcome.READS,),
)

SHD006 = Code(
    "SHD006",
    "inconsistent-names",
    Severity.ERROR,
    "The names of the shards contradict each other",
    "check which files belong together, and name one set with one count",
    """\
Files of one set disagree about how many there are (`-of-00005` beside `-of-00010`), or one number
stands twice, or a number is not below the count. Usually two exports into one folder.
""",
    tensorflow=(Outcome.READS,),
)

SHD007 = Code(
    "SHD007",
    "empty-shard",
    Severity.WARNING,
    "A shard has no records",
    "build with fewer shards",
    """\
A shard without a record is legal and useless: a host or worker that is given it has nothing to do,
and jobs that wait for one batch of every shard hang.

It comes from asking for more shards than there are records for, or from a writer that was killed
before its first record. With a manifest that lists records for the shard, SHD002 and SHD003 are
found as well.
""",
    tensorflow=(Outcome.READS,),
)

SHD008 = Code(
    "SHD008",
    "shards-for-hosts",
    Severity.WARNING,
    "There are too few or too small shards for the hosts named",
    "build with `--hosts N`, N being the number of hosts",
    """\
Training hosts share a dataset by its shards: with fewer shards than hosts some have nothing to
do, and with few for each no host reads in parallel. TensorFlow advises at least ten shards a host,
each of at least 10 MB, so that opening files does not cost more than reading them.

The number of hosts is `hosts = 4` in `datasets/mnist.toml`, for that dataset; or in
`tfrecreg.toml`, for every check:

    [gates.default.limits]
    manifest = { hosts = 4 }

A split that is too small for ten shards of 10 MB a host should have as many as `build --hosts`
would give it, so a dataset that was built for its hosts is never found.
""",
)

SHD009 = Code(
    "SHD009",
    "salvaged-set",
    Severity.ERROR,
    "A shard is what was left of a damaged one",
    "`tfrecreg build NAME --repair REF` gives the original bytes back where the raw data are",
    """\
`tfrecreg salvage` cut the sound records out of a damaged shard and wrote a clean one. Every
checksum in it holds, so nothing else would ever tell that records are missing; the `salvage.json`
beside it does, and so does the manifest of a dataset that was adopted from such a folder.

Training on what is left may be right, and a person should say so: lower the severity in the gate,
or waive the finding with a reason and a day on which that ends:

    [gates.default.severity]
    SHD009 = "warning"

A shard that came through salvage with its bytes unchanged is not found. A `salvage.json` that
cannot be read marks every shard of its folder.
""",
    tensorflow=(Outcome.READS,),
)
