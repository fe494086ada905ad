"""Names and counts of shards; names of classes by number."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.reference import check_dataset_name
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import parse_size

FRAMING = 16
"""Number of bytes that a record takes in addition to its payload."""
SHARDS_PER_HOST = 10
"""TensorFlow advises at least this many shards for each host that reads them."""
MIN_HOST_SHARD = 10_000_000
"""TensorFlow advises at least this many bytes per shard
(https://www.tensorflow.org/tutorials/load_data/tfrecord).
"""

_MIN_SHARD = 1 << 26
_MAX_SHARD = 1 << 30

_USUAL = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}
_READING_ORDER = {"train": 0, "validation": 1, "test": 2}
# Words for splits that are not train, validation or test, or are ambiguous: `eval` is the
# validation split in TFX and the test split elsewhere.
_OTHER = "eval|evaluation|extra|holdout|minival|test[-_]?dev|trainval|unlabell?ed|unsupervised"
_SPLIT = rf"(?:{'|'.join(_USUAL)}|{_OTHER})(?:[-_]?(?:19|20)[0-9]{{2}})?"
_SPLIT_AT_END = re.compile(
    rf"(?:(?P<prefix>.*?)[-_.])?(?P<split>{_SPLIT})", re.IGNORECASE | re.DOTALL
)
_SPLIT_WORD = re.compile(_SPLIT, re.IGNORECASE)
_SPLIT_FOLDER = re.compile(
    rf"(?:.*[-_.=])?(?P<split>{_SPLIT})(?:[-_.].*|data|files|records|set|shards)?",
    re.IGNORECASE | re.DOTALL,
)
_TFX_FOLDER = re.compile(r"split-(?P<split>\w+)", re.IGNORECASE)
_WRITTEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_NAME_AND_SPLIT = re.compile(r"([A-Za-z]\w*)-(\w[\w-]*)")

_MARK = r"(?:[-_.](?:tfrecords?|tfrec)|\.records?)"
_GZIP = r"(?:\.(?:gz|gzip|zlib|zz))?"
_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL
_SET = re.compile(
    rf"(?:(?P<stem>.+?)[-_.]?)?(?<!\d)(?P<number>\d{{1,9}})[-_]?of[-_]?(?P<of>\d{{1,9}})"
    rf"(?P<end>{_MARK}?{_GZIP})",
    _FLAGS,
)
_COUNTED = re.compile(
    r"(?P<stem>.*?(?<!\d)[-_.]?)(?<!\d-)(?P<number>\d{1,9})-(?:\d+x\d+-)?(?P<records>\d{1,12})"
    r"(?P<end>\.tfrec)",
    _FLAGS,
)
_SPARK = re.compile(
    rf"(?P<stem>part)-(?:[mr]-)?(?P<number>\d{{5}})(?:-[\w-]+)?(?:\.c\d+)?{_GZIP}"
    rf"(?P<end>(?P<mark>{_MARK})?{_GZIP})",
    _FLAGS,
)
_SINGLE = re.compile(rf"(?P<stem>.+?)(?P<end>{_MARK}{_GZIP})", _FLAGS)
_NUMBERED = re.compile(r"(?:(?P<stem>.+)[-_.])?(?P<number>\d{1,6})", _FLAGS)
_MARK_AT_END = re.compile(rf"(?P<stem>.+){_MARK}", _FLAGS)
# Files that are not TFRecords but have similar names: other TFDS formats, tables, TensorFlow
# checkpoints.
_STRANGE = re.compile(
    r".+\.(?:array_record|arrow|avro|bagz|csv|data|index|jsonl?|parquet|riegeli|sstable|txt)",
    _FLAGS,
)


def shard_name(dataset: str, split: str, number: int, of: int) -> str:
    """The name of a shard's file: ``mnist-train.tfrecord-00000-of-00010``, which TFDS reads."""
    check_dataset_name(dataset)
    if not _WRITTEN.fullmatch(split):
        raise UsageError(f"`{split}` is not a split name: expected letters, digits and `_`")
    return f"{dataset}-{split}.tfrecord-{number:05d}-of-{of:05d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardName:
    prefix: str
    """The part before the split. It may be empty. If TFDS or this package made the name, the part
    is the name of the dataset.
    """
    split: str | None
    """The split in its normal spelling; None if the name has no split."""
    number: int
    """Number of the shard in its set, from 0. If the name is wrong, the number may be as high as
    the number of shards, or higher."""
    of: int | None
    """Number of shards of the set; None if the name does not declare it."""
    records: int | None
    """Number of records of the shard, if the name declares it, as in ``train00-2071.tfrec``; else
    None.
    """
    stem: str
    """The file's name without the number and the counts. All shards of a set have the same stem."""


def parse_shard_name(filename: str) -> ShardName | None:
    """Parse the name of a file according to the known schemes; None if no scheme matches.

    The schemes are ``mnist-train.tfrecord-00000-of-00010`` (TFDS, and this package),
    ``train-00000-of-01024`` (ImageNet), ``prefix-00000-of-00032.tfrecord`` (Beam),
    ``x.record-00003-of-00100`` (Object Detection), ``data_tfrecord-00000-of-00001.gz`` (TFX),
    ``train00-2071.tfrec``, ``file_00-4096.tfrec`` and ``00-192x192-798.tfrec`` (Kaggle, Keras: the
    last number counts records), and ``x.tfrecord``, ``x.tfrecords``, ``x.tfrec``, ``x.record``,
    ``x_3.tfrecord``, ``03.tfrecord``; each with ``.gz``; and ``part-r-00000`` or
    ``part-00000-<uuid>-c000.tfrecord`` (Spark), for which see :func:`is_any_part`.

    Only the last word before the number or the ending is recognized as a split. Elsewhere it is
    uncertain: ``test_reads.tfrecord`` may be a test split, or the data of a test. Hidden files and
    the sharded files of other formats (``x.array_record-00000-of-00001``, a checkpoint's
    ``variables.data-00000-of-00001``) do not match.
    """
    if filename.startswith(".") or "/" in filename:
        return None
    match = _SET.fullmatch(filename)
    if match:
        return _of_set(match)
    match = _SPARK.fullmatch(filename)
    if match:
        return _parsed(match["stem"], match["number"], end=match["end"])
    match = _COUNTED.fullmatch(filename)
    if match:
        stem = match["stem"]
        return _parsed(stem.rstrip("-_."), match["number"], records=match["records"], end=".tfrec")
    match = _SINGLE.fullmatch(filename)
    if match is None:
        return None
    end = match["end"]
    match = _NUMBERED.fullmatch(match["stem"]) or match
    return _parsed(match["stem"] or "", match.groupdict().get("number", "0"), end=end)


def is_any_part(filename: str) -> bool:
    """Whether Spark and Hadoop give such a name to files of any format: ``part-r-00000``."""
    match = _SPARK.fullmatch(filename)
    return match is not None and match["mark"] is None and not _SET.fullmatch(filename)


def _of_set(match: re.Match[str]) -> ShardName | None:
    stem, end = match["stem"] or "", match["end"]
    if _STRANGE.fullmatch(stem):
        return None
    marked = _MARK_AT_END.fullmatch(stem)
    words = marked["stem"] if marked else stem
    pair = _NAME_AND_SPLIT.fullmatch(words) if stem == f"{words}.tfrecord" else None
    found = _parsed(words, match["number"], of=match["of"], end=stem[len(words) :] + end)
    if pair and (found.split is None or words.count("-") == 1):
        # In the form of TFDS, any text after the dataset's name is the split.
        return replace(found, prefix=pair[1], split=normal_split(pair[2]))
    return found


def _parsed(
    words: str, number: str, *, of: str | None = None, records: str | None = None, end: str
) -> ShardName:
    match = _SPLIT_AT_END.fullmatch(words)
    return ShardName(
        prefix=(match["prefix"] or "") if match else words,
        split=normal_split(match["split"]) if match else None,
        number=int(number),
        of=None if of is None else int(of),
        records=None if records is None else int(records),
        stem=words + end,
    )


def normal_split(text: str) -> str:
    """The usual name of a split, ``train``, ``validation`` or ``test``, if `text` means this split.

    In upper or lower case, train and training mean ``train``; val, valid, validation and dev mean
    ``validation``; test and testing mean ``test``. Other names stay unchanged, including `eval`,
    which is a validation split in TFX and a test split elsewhere. :func:`normal_splits` keeps
    several names distinct.
    """
    return _USUAL.get(text.lower(), text)


def usual_split(text: str) -> str:
    """The usual split that `text` means: ``train``, ``validation``, ``test``; empty for others."""
    return _USUAL.get(text.lower(), "")


def is_split_word(text: str) -> bool:
    """Whether `text` is a usual name of a split: ``train``, ``EVAL``, ``val2017``."""
    return _SPLIT_WORD.fullmatch(text) is not None


def folder_split(name: str, *, tfx: bool = False) -> str:
    """The split in a folder's name, spelled as it is there; empty if the name has no split. For
    example, ``valid``, ``flowers_test`` and ``train_set`` have a split. With `tfx`, only names such
    as ``Split-train`` have a split.
    """
    match = (_TFX_FOLDER if tfx else _SPLIT_FOLDER).fullmatch(name)
    return match["split"] if match is not None else ""


def is_split_name(name: str) -> bool:
    return _WRITTEN.fullmatch(name) is not None


def normal_splits(names: Iterable[str]) -> dict[str, str]:
    """The normal spelling of each of `names`.

    If names would become equal (`val` and `dev` of one dataset), all of them stay unchanged, so
    that splits are never merged.
    """
    normal = {name: normal_split(name) for name in names}
    often = Counter(normal.values())
    return {name: found if often[found] == 1 else name for name, found in normal.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPolicy:
    """The requested number or size of a split's shards. At most one of the four fields may be set.
    If none is set, TFDS's rule applies.
    """

    shards: int | None = None
    """Exact number of shards."""
    shard_size: int | None = None
    """Maximum average size of a shard in bytes. The split gets as few shards as possible."""
    records_per_shard: int | None = None
    """Maximum number of records per shard. The split gets as few shards as possible."""
    hosts: int | None = None
    """Number of training hosts. Each host gets as many shards as TensorFlow advises."""

    def __post_init__(self) -> None:
        given = {
            f"`--{each.name.replace('_', '-')}`": value
            for each in fields(self)
            if (value := getattr(self, each.name)) is not None
        }
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} exclude each other")
        for name, value in given.items():
            if value < 1:
                raise UsageError(f"{name} must be at least 1, found {value}")


def shard_policy(
    shards: int | None, size: str | int | None, records: int | None, hosts: int | None
) -> ShardPolicy | None:
    if (shards, size, records, hosts) == (None,) * 4:
        return None
    try:
        parsed = parse_size(size) if isinstance(size, str) else size
    except ValueError as error:
        raise UsageError(f"`{size}` is not a size: {error}") from None
    return ShardPolicy(shards=shards, shard_size=parsed, records_per_shard=records, hosts=hosts)


def shard_count(policy: ShardPolicy, records: int, payload_bytes: int) -> int:
    """The number of shards of a split: at least 1, and at most the number of its records."""
    total = payload_bytes + FRAMING * records
    if policy.shards is not None:
        wanted = policy.shards
    elif policy.shard_size is not None:
        wanted = _ceil(total, policy.shard_size)
    elif policy.records_per_shard is not None:
        wanted = _ceil(records, policy.records_per_shard)
    elif policy.hosts is not None:
        # The number is a multiple of the number of hosts, unless there are fewer records than
        # hosts.
        each = min(SHARDS_PER_HOST, max(1, total // (policy.hosts * MIN_HOST_SHARD)))
        each = max(each, _ceil(total, policy.hosts * _MAX_SHARD))
        wanted = policy.hosts * max(1, min(each, records // policy.hosts))
    else:
        wanted = _as_tfds(records, total)
    return max(1, min(wanted, records))


def _as_tfds(records: int, total: int) -> int:
    """The number of shards by TFDS's rule (`ShardConfig.calculate_number_shards` in
    `shard_utils.py`).

    If a split has few but large records, it is possible that no number satisfies TFDS's rule. TFDS
    then puts all records into one shard. This function instead keeps each shard near 1 GiB.
    """
    fewest, most = max(1, total // _MAX_SHARD), max(1, total // _MIN_SHARD)
    if fewest > 1024:
        return _ceil(fewest, 1024) * 1024
    for count in (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2):
        if fewest <= count <= most and count <= records:
            return count
    return fewest


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def bounds(records: int, shards: int) -> Iterator[tuple[int, int]]:
    """The records of each shard: the number of the first record, and the number after the last
    record. The sizes of two shards differ by at most one record.
    """
    for number in range(shards):
        yield number * records // shards, (number + 1) * records // shards


def in_reading_order(split: str) -> tuple[int, str]:
    """A key to sort splits for display: train, validation, test, and then the others by name."""
    return _READING_ORDER.get(normal_split(split), len(_READING_ORDER)), split


LabelMap = Mapping[int, str]
"""The names of classes by number. Some numbers may have no name."""


def named_classes(names: Sequence[str]) -> LabelMap:
    """The names of classes by number, from the list in a manifest. Empty names are omitted."""
    return {number: name for number, name in enumerate(names) if name}


def class_name(names: Mapping[int, str], label: int) -> str:
    """A class in a message: its name, or its number if it has no name."""
    name = names.get(label)
    return f"`{safe(name, limit=60)}`" if name else str(label)


def collision(names: Iterable[str]) -> str:
    """A clause about two names that differ only in case or Unicode normal form. Empty if no names
    form such a pair.

    One name of the pair is nearly always a mistake. The mistake was made on a system that treats
    the two names as equal.
    """
    seen: dict[str, str] = {}
    for name in names:
        folded = unicodedata.normalize("NFC", name).casefold()
        other = seen.setdefault(unicodedata.normalize("NFC", folded), name)
        if other != name:
            shown = f"`{_as_ascii(other)}` and `{_as_ascii(name)}`"
            return f"differ only by case or Unicode normal form: {shown}"
    return ""


def _as_ascii(name: str) -> str:
    """A name whose characters beyond ASCII are escaped, so that similar names look different."""
    return safe(name.encode("ascii", "backslashreplace").decode("ascii")).replace("\\\\", "\\")
