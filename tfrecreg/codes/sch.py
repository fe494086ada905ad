"""``SCH``: records against the schema."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = [
    "SCH001",
    "SCH002",
    "SCH003",
    "SCH004",
    "SCH005",
    "SCH006",
    "SCH007",
    "SCH008",
    "SCH009",
    "SCH010",
    "SCH020",
    "SCH021",
]

SCH001 = Code(
    "SCH001",
    "not-an-example",
    Severity.ERROR,
    "A record's payload is not a tf.train.Example",
    "check what wrote the file; for other payloads check without a schema: --skip schema",
    """\
A TFRecord is a list of byte strings, and any bytes will do. This dataset has a schema, so its
records are supposed to be serialized `tf.train.Example` messages, and this one is not: it does not
parse as one, or it parses, as many a message does, without a single feature in it.

Its checksums hold (otherwise this would be a CRC finding), so the bytes are what was written. The
usual causes are a file of SequenceExamples, events or raw pictures among the shards, an Example
that was compressed or encrypted as a whole, and a writer that was handed the wrong object.

`tf.io.parse_example` fails on a record that does not parse with `Could not parse example input`,
and takes the whole batch down with it. Build the shard again, or keep such files out of the
dataset. If the payloads are meant to be something else, the schema does not apply to them: leave it
out with `--skip schema`, and the other checks still run.
""",
)

SCH002 = Code(
    "SCH002",
    "missing-feature",
    Severity.ERROR,
    "A feature that the schema requires is missing",
    "mend the raw data or the source; or let the schema allow it: presence.min_fraction below 1",
    """\
The schema says that a feature is in every example (`presence { min_fraction: 1 }`), and in these
records it is not. A feature that is there without a kind counts as missing, as it does for
TensorFlow; a feature with an empty list is there (SCH004 may have something to say about it).

A `FixedLenFeature` without a default makes `tf.io.parse_example` fail on such a record: `Feature: x
(data type: int64) is required but could not be found`. That is a training job that stops in the
middle of an epoch.

A `min_fraction` below 1 and a `min_count` are about all the examples of a split: they are judged
when the split has been read, and the location then names the split rather than a record.

If the gap is real, build again from complete raw data. If examples may lack the feature, say so in
the schema: lower or remove `min_fraction`, and with it a fixed `shape`. If only some of the splits
have it (labels, often), keep it out of an environment with `not_in_environment` and check those
splits in that environment.
""",
)

SCH003 = Code(
    "SCH003",
    "wrong-type",
    Severity.ERROR,
    "A feature has values of another type than the schema says",
    "make the source write the type that the schema names, or correct the schema",
    """\
An example holds lists of BYTES, FLOAT or INT (int64). The schema names one of them for this feature
and the record has another.

TensorFlow cannot convert while it parses: `Data types don't match`. The usual causes are a label
written as text in one place and as a number in another, numbers that went through JSON or pandas
and became floats, and a bool or an id kept as FLOAT. The last is worse than it looks: FLOAT is
float32, which has no room for whole numbers above 2^24, so larger ids have been changed already.

The detail of each location says which type was found. Where shards differ from each other, some
were written by another version of the source.
""",
)

SCH004 = Code(
    "SCH004",
    "wrong-shape",
    Severity.ERROR,
    "A feature has another number of values than its shape or value count allows",
    "look at the records named; mend the source, or widen `shape` or `value_count`",
    """\
An example has no shapes, only lists. The schema says how long the list is: by a fixed `shape`,
whose sizes multiplied are the number of values, or by a `value_count` with bounds. This record's
list is longer or shorter. An empty list is a list of length 0.

For a `FixedLenFeature`, `tf.io.parse_example` fails with `Number of int64 values != expected.
Values size: 2 but output shape: []`. A `VarLenFeature` takes any length, and a model then sees
padding or a cut where there should be data.

The usual causes are a picture of another size than the rest whose pixels were stored, a grey
picture among colour ones (a third of the values), and boxes or labels of which one was dropped. If
the length may vary, replace the `shape` by a `value_count`.
""",
)

SCH005 = Code(
    "SCH005",
    "unexpected-feature",
    Severity.ERROR,
    "A feature is in the data and not in the schema",
    "declare it in the schema, or make the source leave it out",
    """\
The record has a feature of a name that the schema does not declare, or that it declares for other
environments only. TFDV calls this a new column.

A reader that parses by the schema never sees it, so the usual cause shows itself elsewhere first:
a renamed or misspelt key, which is then also missing under its old name (SCH002). Otherwise it is
a column that somebody added without a review: it costs bytes in every record, and it may be one
that must not leave the house or that gives the label away.

Add it with `tfrecreg schema accept`, which drafts the lines and shows them, or by hand. If it may
be there and no one should rely on it, declare it with `lifecycle_stage: ALPHA`: nothing about it is
checked then.

Only the first hundred names of a shard are reported one by one.
""",
)

SCH006 = Code(
    "SCH006",
    "outside-domain",
    Severity.ERROR,
    "A value is outside the domain that the schema gives the feature",
    "look at the values named; mend the data, or widen the domain",
    """\
The schema says which values make sense: whole numbers or floats between bounds, strings from a
list, 0 and 1 for a `bool_domain`, pictures up to a size. The value named in the detail is none of
them. For features of type BYTES with a number domain, the text has to be a number to begin with.

This is where labels go wrong: a class that the label map does not have, `-1` for "unknown", classes
counted from 1 by one tool and from 0 by the next, boxes in pixels where 0 to 1 was agreed. Models
mostly train on with such values, and an out-of-range label makes the loss NaN on a GPU and an error
on a CPU.

With `distribution_constraints { min_domain_mass: 0.95 }` a string feature may have up to 5 % of the
values of a split outside its list; this is found only where there are more.

If the value is right, the domain is too narrow: add it, and think of the model that was trained
without it.
""",
)

SCH007 = Code(
    "SCH007",
    "not-finite",
    Severity.ERROR,
    "A float is NaN or infinite",
    "find where it comes from; if it is meant, allow it: float_domain { disallow_nan: false }",
    """\
One NaN in a batch makes its loss NaN, and a step later every weight of the model. It is an error
where the schema says `disallow_nan: true` or `disallow_inf: true`, each for its own kind of value.
Where the schema says neither, both are found and are a warning, because no one decided that they
are fine. `disallow_nan: false` and `disallow_inf: false` say just that, and keep it quiet.

The usual causes are a missing value from a table (pandas reads an empty cell as NaN), a division by
a width or a deviation of zero, the logarithm of 0, and a float64 too large for float32 that
became infinite on its way into the example.

To find where it comes from, look up the record's key in the raw data. A missing value is better
written as an empty list or left out; the schema can say so, a NaN cannot.
""",
)

SCH008 = Code(
    "SCH008",
    "distinct-values",
    Severity.ERROR,
    "A feature has more or fewer different values in a split than the schema allows",
    "look at what was added or lost; mend the data, or correct `unique_constraints`",
    """\
The schema says how many different values a feature has over all the examples of a split:
`unique_constraints { min: 10 max: 10 }`. It is meant for features that stand for things in the
world: classes, sensors, users. One value more is often a misspelling (`cat`, `Cat`), one less a
class that the split never got.

Values are told apart by their bytes, or as whole numbers. Up to 100,000 of them are counted: that
is as far as memory that does not grow with the data goes. Bounds above that are not judged where
there are more; the report then says so, beside the number of records.

No record is to blame alone, so the location names the split. To see the values, look at the split
with `tfrecreg head`, or give the feature a `string_domain` or an `int_domain`, which names each
record that leaves it.
""",
)

SCH009 = Code(
    "SCH009",
    "parts-disagree",
    Severity.ERROR,
    "The features that make a sparse or weighted feature do not fit together",
    "look at the records named; make the source write all the parts, in equal lengths",
    """\
A `sparse_feature` of the schema is one tensor kept in several features: for each value its index in
every dimension. A `weighted_feature` has a weight for each value. The parts only mean something
together. In these records one of them is missing, their lengths differ, an index is negative or
beyond `dense_shape`, or indices do not rise although the schema says `is_sorted`.

`tf.io.parse_example` with a `SparseFeature` fails where the lengths differ (`Dimensions 2 and 1 are
not compatible`), and takes an index out of range as it is: that surfaces later, in whichever
operation makes the tensor dense. Weights of another length shift silently: each value is then taken
with the weight of another one.

Each part has rules of its own as well, and findings of its own where it breaks them.
""",
)

SCH010 = Code(
    "SCH010",
    "number-of-examples",
    Severity.ERROR,
    "There are more or fewer examples than the schema allows",
    "find out what is missing or came twice; or correct `dataset_constraints`",
    """\
The schema bounds the number of examples: `dataset_constraints { min_examples_count: 60000 }`. All
splits count together, and of each shard the records that are examples and whose checksums hold.

Too few are the sign of an export that stopped early, a filter that matched nothing, or a split that
was never written. Each record that is there is fine, so nothing else notices. Too many come from a
source that lists an item twice, or from two exports in one folder.

Compare with the ledger of the build (`tfrecreg show`), which says what became of every item. If the
dataset has grown or shrunk for a reason, put its new size into the schema.
""",
)

OF_RECORDS = (SCH001, SCH002, SCH003, SCH004, SCH005, SCH006, SCH007, SCH008, SCH009, SCH010)
"""The codes of the validator `schema`; those from SCH020 on are about schemas alone."""

SCH020 = Code(
    "SCH020",
    "breaks-reader",
    Severity.ERROR,
    "A reader made from one version of the schema fails on records of another version",
    "keep the old feature as it was and add a new one beside it, or release a new MAJOR version",
    """\
A training job that was written against one release parses its records with a feature specification
that follows from the schema (`tfrecreg schema show --format tf`). Here a record that the one schema
allows makes the reader of the other one fail in `tf.io.parse_example`, and a single such record
takes its whole batch and the job down.

There are three ways to fail. The reader wants the feature in every example, and the records may
lack it. The reader wants another type, or the records may have any. Or the reader wants a fixed
number of values, and the records may have another. `tfrecreg schema check --mode backward` holds
today's reader against yesterday's records, `--mode forward` yesterday's reader against today's, and
`full` both.

Records have to be possible, not there: it is the schemas that are compared, and what a schema
allows will be written one day. A feature that leaves is best kept for a while with
`lifecycle_stage: DEPRECATED`, after its readers have stopped asking for it.
""",
)

SCH021 = Code(
    "SCH021",
    "changes-meaning",
    Severity.WARNING,
    "A reader made from one version of the schema misreads records of another version",
    "tell who reads it; if the values mean something else now, give them a new name",
    """\
Parsing works, and what comes out is not what the reader was made for. It asks for a feature that
the records no longer have, and gets an empty tensor. Or the records may hold values that its own
schema does not allow: a class beyond those that its last layer has, a string that its vocabulary
does not know, a box that is not from 0 to 1, a NaN. Or there are as many values as before in
another shape, so that rows become columns.

TensorFlow says nothing in any of these cases, and the model is trained or served with what it
gets. That is why this is a warning, which `--fail-on warning` turns into a failure.
""",
)
