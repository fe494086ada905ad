"""``DRF``: drift and skew: what two sets of records have in common, and what not."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = ["DRF001", "DRF002", "DRF003", "DRF004"]

DRF001 = Code(
    "DRF001",
    "drift",
    Severity.WARNING,
    "A feature is distributed otherwise than in the version that was named",
    "look at both: `tfrecreg stats`; a `drift_comparator` in the schema sets the threshold",
    """\
`check REF --against OTHER` compares each split with the same split of OTHER. For categories it is
the largest difference between the shares of one value (L-infinity), for numbers the Jensen-Shannon
divergence of the histograms; both are between 0 and 1. TFDV computes them.

A feature with a `drift_comparator` in the schema is judged by its threshold. Where the schema has
none for any feature, labels (categories with a domain) and sizes (`height`, `width` and the like)
are judged by the limit `threshold` of the validator `drift`, 0.1 by default, and only in splits of
`min_examples`, 100 by default: fewer differ by chance.

A release whose data drifted may be meant: new users, another season. Then raise the threshold, or
waive the finding until the next release.
""",
)

DRF002 = Code(
    "DRF002",
    "skew",
    Severity.WARNING,
    "A feature is distributed otherwise in one split than in another",
    "split at random, by group where records belong together; or set a `skew_comparator`",
    """\
The split `train` is compared with each other split of the same version: what a model is judged on
should look like what it learns from. Measures and thresholds are those of DRF001, with the
`skew_comparator` of the schema.

The usual cause is a split by order: raw data that are sorted by class or by date, cut in two. A
test set that is meant to be different (new patients, another city) is a reason for a waiver.
""",
)

DRF003 = Code(
    "DRF003",
    "nothing-to-compare",
    Severity.WARNING,
    "A feature that the schema has a comparator for is missing on one side",
    "mend what writes it, or take the comparator out of the schema",
    """\
The schema asks for a comparison of a feature, and one of the two sets of records does not have it:
then there is no distance, and TFDV reports the missing side instead of a drift.

A feature that vanished is a finding of the validator `schema` as well (SCH002), with the records.
""",
)

DRF004 = Code(
    "DRF004",
    "no-split-in-common",
    Severity.ERROR,
    "The version that was named has none of the splits, so nothing was compared",
    "name a version with the same splits; `--skip drift` where only duplicates are looked for",
    """\
`check REF --against OTHER` compares each split with the split of the same name. Where the two have
none in common (a `validation` against a `train`), there is no distance, and a check that passes
would say that nothing drifted. The message names the splits of both.

Splits of bare files are told by their names: `train-00000-of-00002.tfrecord` is of `train`. Splits
of one version are compared with each other without `--against` (DRF002).
""",
)
