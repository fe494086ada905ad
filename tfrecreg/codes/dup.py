"""``DUP``: duplicates in a split, and leaks from one split to another."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = ["DUP001", "DUP002", "DUP004", "DUP005"]

DUP001 = Code(
    "DUP001",
    "duplicate-in-split",
    Severity.WARNING,
    "A split has the same picture, or the same record, more than once",
    "take the copies out of the raw data, unless they are meant to weigh more",
    """\
Copies weigh more in training than their authors meant, and scores over a split with copies count
some examples twice. The count is that of the records that are too many: a picture that is there
three times counts two. Each place names the copy, and the earlier record that it is the same as.

Compared are the bytes of encoded pictures: the features that the schema gives an `image_domain`,
else `image/encoded`, else what begins as a picture does. Records without a picture are compared
whole, in their canonical form, so that the order in which features were written does not count.
Options under `limits.duplicates` of a gate change that: `feature` names another feature, and with
`pixels = true` pictures are decoded, so that the same pixels in another format are the same.
""",
)

DUP002 = Code(
    "DUP002",
    "duplicate-across-splits",
    Severity.WARNING,
    "Two splits have a picture, or a record, in common: a leak",
    "take it out of one of the splits: out of `train`, if scores should stay comparable",
    """\
What was trained on was learnt by heart, so a score over it says nothing about new data. The count
is that of the different pictures or records that both splits have; copies in one split are DUP001.
Each place is in the split that is not `train`, and names the record of the other one.

It is a warning, for well-known sets have a few: Fashion-MNIST has ten pictures in both splits.
Where no leak may pass, a gate says so: `severity = { DUP002 = "error" }` under `[gates.NAME]`. Then
a leak that is known is accepted by a waiver, with a reason.

What is compared, and how to change that, is said with DUP001.
""",
)

DUP004 = Code(
    "DUP004",
    "group-across-splits",
    Severity.ERROR,
    "A group that should be in one split is in two: a leak",
    "split by groups: in a source with a split option, its option `group` keeps them together",
    """\
Frames of one video, slices of one patient, photographs of one place: different pictures that tell
as much as copies do. Which records belong together nobody can guess, so one of two options under
`limits.duplicates` of a gate has to say it. `group` names a feature whose value is the group, and
`group_key` is a regular expression over the keys of records, of which the first group counts, or
without one the whole match: `group_key = "^(patient[0-9]+)_"`.

The count is that of the groups that two splits have in common; a place names the first record of
one in the split that is not `train`, and one of the other. Keys are known from the indexes of a
build. Records without the feature, or whose key does not match, are of no group: how many they are
is measured as `duplicates.ungrouped`.
""",
)

DUP005 = Code(
    "DUP005",
    "labels-contradict",
    Severity.WARNING,
    "The same picture has different labels in different records",
    "look at the picture and correct one label, or take the picture out",
    """\
At least one of the labels is wrong, and training on both teaches neither. Copies with equal labels
are DUP001 and DUP002. What is the same is told as there: by the bytes of the picture, with
`pixels = true` by its pixels. The count is that of the pictures; a place names the first record
whose label is another one than that of the first record with the picture, and both labels.

The label is the feature with names of classes in the manifest, `image/class/label` or `label`, and
counts where a record has one number in it that is not negative. Labels of objects are left out: the
same picture may be there once for each of its objects.

It is a warning, as published sets have some, and several people may have labelled a picture. Where
none may pass, a gate says so: `severity = { DUP005 = "error" }` under `[gates.NAME]`.
""",
)
