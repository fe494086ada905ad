"""What anomalies of one kind have in common: how they are found, and what to do."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GROUPS", "Group"]


class Group(NamedTuple):
    """What anomalies of one kind have in common."""

    hint: str
    found: str
    """How TFDV finds them."""
    cure: str
    of_records: str
    """The code under which the records themselves are found; empty where none causes it alone."""


GROUPS = {
    "type": Group(
        "`tfrecreg check --only schema` names the records; mend what writes them",
        "TFDV knows the type of a feature from its statistics, over all examples of the split.",
        "A type never widens by itself: mend what writes the records, or change the schema's type, "
        "which every reader has to learn.",
        "SCH003",
    ),
    "utf8": Group(
        "`tfrecreg check --only schema` names the records; write UTF-8",
        "TFDV looks at every value of a string domain while it counts the values.",
        "Decode what is in another encoding where the records are made; for bytes that are no text "
        "take the domain out of the schema.",
        "SCH006",
    ),
    "domain": Group(
        "`check --only schema` names the records; `tfrecreg schema accept` widens the domain",
        "TFDV compares the smallest and the largest value, or the list of values, with the domain.",
        "New values are either mistakes in the raw data or news: mend the first, and let `tfrecreg "
        "schema accept` propose the change for the second.",
        "SCH006",
    ),
    "count": Group(
        "`tfrecreg check --only schema` names the records",
        "TFDV keeps the smallest and the largest number of values that an example has.",
        "Mend what writes the records, or give the feature the `value_count` or `shape` it has.",
        "SCH004",
    ),
    "presence": Group(
        "`tfrecreg check --only schema` names the records that lack it",
        "TFDV counts the examples that have the feature, and those that have not.",
        "Mend what writes the records, or lower `presence.min_fraction` and `min_count`: readers "
        "then need a default.",
        "SCH002",
    ),
    "new": Group(
        "`tfrecreg schema accept` proposes the feature; or leave it out of the records",
        "TFDV has statistics of a feature that no entry of the schema names.",
        "Add it to the schema after a look at it, or stop writing it.",
        "SCH005",
    ),
    "nan": Group(
        "`tfrecreg check --only schema` names the records",
        "TFDV counts values that are NaN or infinite.",
        "They spread through every sum of a training: drop the records, or replace the values.",
        "SCH007",
    ),
    "unique": Group(
        "look at the values: `tfrecreg stats`",
        "TFDV counts different values, exactly while they are few and by a sketch beyond.",
        "Too many mean identifiers for categories, too few a feature that says nothing; "
        "`unique_constraints` of the schema has the limits.",
        "",
    ),
    "sparse": Group(
        "`tfrecreg check --only schema` names the records",
        "TFDV compares the counts of the features that the sparse feature is made of.",
        "Write an index for each value, and a value for each index.",
        "SCH004",
    ),
    "weighted": Group(
        "`tfrecreg check --only schema` names the records",
        "TFDV compares the counts of the values and of their weights.",
        "Write a weight for each value.",
        "SCH004",
    ),
    "dataset": Group(
        "look at the ledger: `tfrecreg show`; limits are in `dataset_constraints` of the schema",
        "TFDV compares the number of examples with the limits of `dataset_constraints`.",
        "Find out whether examples were lost or doubled; otherwise move the limit.",
        "",
    ),
    "compare": Group(
        "look at both: `tfrecreg stats`; thresholds are in the comparators of the schema",
        "TFDV compares two distributions by the measure of the comparator.",
        "Find out what changed in the raw data; where it is meant to change, raise the threshold.",
        "",
    ),
    "meaning": Group(
        "look at the values: `tfrecreg head`",
        "TFDV recognises kinds of values, such as pictures or text, where it is asked to.",
        "Give the feature the domain that it has.",
        "",
    ),
    "picture": Group(
        "`tfrecreg check --only images` names the records",
        "TFDV reads the headers of pictures where statistics of semantic domains are on.",
        "Mend the pictures that nothing can read, or move the limit of `image_domain`.",
        "",
    ),
    "text": Group(
        "look at the values: `tfrecreg stats`; limits are in the `natural_language_domain`",
        "TFDV counts tokens by the vocabulary of the schema's natural language domain.",
        "Mend the text or the vocabulary, or move the limit.",
        "",
    ),
    "schema": Group(
        "mend the schema: `tfrecreg schema show` prints it",
        "TFDV finds it in the schema itself, or between the schema and the statistics.",
        "Change the schema where it contradicts itself or asks for what there is not.",
        "",
    ),
}
