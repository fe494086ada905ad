"""``SCH1xx``: what TFDV reports over whole statistics, one code a type of anomaly.

The code is SCH100 plus the number of the type in TensorFlow Metadata's `AnomalyInfo.Type`, which
never changes either. `tfrecreg.codes.sch` has what is found record by record.
"""

from __future__ import annotations

import textwrap

from tfrecreg.codes.anomaly_groups import GROUPS
from tfrecreg.findings import Code, Severity

__all__ = ["ANOMALIES", "RECORD_CODES", "UNKNOWN", "anomaly_code"]


_TYPES: tuple[tuple[int, str, str, str], ...] = (
    (1, "BOOL_TYPE_BIG_INT", "domain", "An integer that should be true or false is above 1"),
    (2, "BOOL_TYPE_BYTES_NOT_INT", "type", "A boolean of integers holds bytes"),
    (
        3,
        "BOOL_TYPE_BYTES_NOT_STRING",
        "utf8",
        "A boolean of strings holds bytes that are not UTF-8",
    ),
    (4, "BOOL_TYPE_FLOAT_NOT_INT", "type", "A boolean of integers holds floats"),
    (5, "BOOL_TYPE_FLOAT_NOT_STRING", "type", "A boolean of strings holds floats"),
    (6, "BOOL_TYPE_INT_NOT_STRING", "type", "A boolean of strings holds integers"),
    (7, "BOOL_TYPE_SMALL_INT", "domain", "An integer that should be true or false is below 0"),
    (8, "BOOL_TYPE_STRING_NOT_INT", "type", "A boolean of integers holds strings"),
    (
        9,
        "BOOL_TYPE_UNEXPECTED_STRING",
        "domain",
        "A string is neither the schema's word for true nor that for false",
    ),
    (
        10,
        "ENUM_TYPE_BYTES_NOT_STRING",
        "utf8",
        "A feature with a string domain holds bytes that are not UTF-8",
    ),
    (11, "ENUM_TYPE_FLOAT_NOT_STRING", "type", "A feature with a string domain holds floats"),
    (12, "ENUM_TYPE_INT_NOT_STRING", "type", "A feature with a string domain holds integers"),
    (13, "ENUM_TYPE_INVALID_UTF8", "utf8", "A value of a string domain is not valid UTF-8"),
    (
        14,
        "ENUM_TYPE_UNEXPECTED_STRING_VALUES",
        "domain",
        "Values are missing from the schema's string domain",
    ),
    (
        15,
        "FEATURE_TYPE_HIGH_NUMBER_VALUES",
        "count",
        "Some examples have more values than the schema allows",
    ),
    (
        16,
        "FEATURE_TYPE_LOW_FRACTION_PRESENT",
        "presence",
        "The feature is present in a smaller part of the examples than the schema asks for",
    ),
    (
        17,
        "FEATURE_TYPE_LOW_NUMBER_PRESENT",
        "presence",
        "The feature is present in fewer examples than the schema asks for",
    ),
    (
        18,
        "FEATURE_TYPE_LOW_NUMBER_VALUES",
        "count",
        "Some examples have fewer values than the schema asks for",
    ),
    (
        19,
        "FEATURE_TYPE_NOT_PRESENT",
        "presence",
        "The schema asks for the feature, and no example has it",
    ),
    (20, "FEATURE_TYPE_NO_VALUES", "count", "The feature is present, and has no values"),
    (
        21,
        "FEATURE_TYPE_UNEXPECTED_REPEATED",
        "count",
        "A feature that the schema calls single has several values",
    ),
    (22, "FLOAT_TYPE_BIG_FLOAT", "domain", "A float is above the schema's domain"),
    (23, "FLOAT_TYPE_NOT_FLOAT", "type", "A feature of floats holds something else"),
    (24, "FLOAT_TYPE_SMALL_FLOAT", "domain", "A float is below the schema's domain"),
    (25, "FLOAT_TYPE_STRING_NOT_FLOAT", "type", "A string that should read as a float does not"),
    (
        26,
        "FLOAT_TYPE_NON_STRING",
        "type",
        "Floats that should be written as strings are something else",
    ),
    (
        27,
        "FLOAT_TYPE_UNKNOWN_TYPE_NUMBER",
        "type",
        "A feature with a float domain has a type that TFDV does not know",
    ),
    (28, "INT_TYPE_BIG_INT", "domain", "An integer is above the schema's domain"),
    (29, "INT_TYPE_INT_EXPECTED", "type", "A feature of integers holds something else"),
    (30, "INT_TYPE_NOT_INT_STRING", "type", "A string that should read as an integer does not"),
    (
        31,
        "INT_TYPE_NOT_STRING",
        "type",
        "Integers that should be written as strings are something else",
    ),
    (32, "INT_TYPE_SMALL_INT", "domain", "An integer is below the schema's domain"),
    (
        33,
        "INT_TYPE_STRING_EXPECTED",
        "type",
        "A feature with an integer domain over strings holds something else",
    ),
    (
        34,
        "INT_TYPE_UNKNOWN_TYPE_NUMBER",
        "type",
        "A feature with an integer domain has a type that TFDV does not know",
    ),
    (
        35,
        "SCHEMA_MISSING_COLUMN",
        "presence",
        "A feature of the schema is missing from the data altogether",
    ),
    (36, "SCHEMA_NEW_COLUMN", "new", "The data have a feature that the schema does not name"),
    (
        37,
        "SCHEMA_TRAINING_SERVING_SKEW",
        "compare",
        "Training and serving data differ, by the schema's old measure",
    ),
    (38, "STRING_TYPE_NOW_FLOAT", "type", "A feature of strings holds floats now"),
    (39, "STRING_TYPE_NOW_INT", "type", "A feature of strings holds integers now"),
    (40, "COMPARATOR_CONTROL_DATA_MISSING", "compare", "The data to compare with lack the feature"),
    (
        41,
        "COMPARATOR_TREATMENT_DATA_MISSING",
        "compare",
        "The data that are compared lack the feature",
    ),
    (
        42,
        "COMPARATOR_L_INFTY_HIGH",
        "compare",
        "The most different share of one value differs by more than the comparator allows",
    ),
    (43, "NO_DATA_IN_SPAN", "dataset", "There are no examples at all"),
    (44, "SPARSE_FEATURE_MISSING_VALUE", "sparse", "A sparse feature has indices and no values"),
    (45, "SPARSE_FEATURE_MISSING_INDEX", "sparse", "A sparse feature has values and no indices"),
    (
        46,
        "SPARSE_FEATURE_LENGTH_MISMATCH",
        "sparse",
        "A sparse feature has another number of indices than of values",
    ),
    (
        47,
        "SPARSE_FEATURE_NAME_COLLISION",
        "schema",
        "A sparse feature has the name of another feature",
    ),
    (
        48,
        "SEMANTIC_DOMAIN_UPDATE",
        "meaning",
        "The values look like another kind of data than the schema says",
    ),
    (
        49,
        "COMPARATOR_LOW_NUM_EXAMPLES",
        "dataset",
        "There are fewer examples, against those before, than the comparator allows",
    ),
    (
        50,
        "COMPARATOR_HIGH_NUM_EXAMPLES",
        "dataset",
        "There are more examples, against those before, than the comparator allows",
    ),
    (
        51,
        "DATASET_LOW_NUM_EXAMPLES",
        "dataset",
        "There are fewer examples than the schema asks for",
    ),
    (
        52,
        "BOOL_TYPE_UNEXPECTED_FLOAT",
        "domain",
        "A float that should be true or false is neither 0 nor 1",
    ),
    (53, "FLOAT_TYPE_HAS_NAN", "nan", "There are NaN where the schema forbids them"),
    (
        54,
        "WEIGHTED_FEATURE_NAME_COLLISION",
        "schema",
        "A weighted feature has the name of another feature",
    ),
    (
        55,
        "WEIGHTED_FEATURE_MISSING_VALUE",
        "weighted",
        "A weighted feature has weights and no values",
    ),
    (
        56,
        "WEIGHTED_FEATURE_MISSING_WEIGHT",
        "weighted",
        "A weighted feature has values and no weights",
    ),
    (
        57,
        "WEIGHTED_FEATURE_LENGTH_MISMATCH",
        "weighted",
        "A weighted feature has another number of weights than of values",
    ),
    (58, "DATASET_HIGH_NUM_EXAMPLES", "dataset", "There are more examples than the schema allows"),
    (
        59,
        "FEATURE_TYPE_HIGH_UNIQUE",
        "unique",
        "There are more different values than the schema allows",
    ),
    (
        60,
        "FEATURE_TYPE_LOW_UNIQUE",
        "unique",
        "There are fewer different values than the schema asks for",
    ),
    (
        61,
        "FEATURE_TYPE_NO_UNIQUE",
        "unique",
        "The schema limits the number of different values of a feature that has none",
    ),
    (62, "FLOAT_TYPE_HAS_INF", "nan", "There are infinite values where the schema forbids them"),
    (
        63,
        "COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH",
        "compare",
        "Two distributions differ by more than the comparator allows",
    ),
    (
        64,
        "LOW_SUPPORTED_IMAGE_FRACTION",
        "picture",
        "Fewer values are pictures of a known format than the schema asks for",
    ),
    (
        65,
        "VALUE_NESTEDNESS_MISMATCH",
        "count",
        "Values are nested to another depth than the schema says",
    ),
    (
        66,
        "DOMAIN_INVALID_FOR_TYPE",
        "schema",
        "The schema gives a feature a domain that its type cannot have",
    ),
    (67, "FEATURE_MISSING_NAME", "schema", "A feature of the schema has no name"),
    (68, "FEATURE_MISSING_TYPE", "schema", "A feature of the schema has no type"),
    (69, "INVALID_SCHEMA_SPECIFICATION", "schema", "The schema contradicts itself"),
    (70, "UNEXPECTED_DATA_TYPE", "type", "The values are of another type than the schema says"),
    (71, "SEQUENCE_VALUE_TOO_FEW_OCCURRENCES", "text", "A token is too rare in a sequence"),
    (72, "SEQUENCE_VALUE_TOO_MANY_OCCURRENCES", "text", "A token is too frequent in a sequence"),
    (73, "SEQUENCE_VALUE_TOO_SMALL_FRACTION", "text", "A token is in too few sequences"),
    (74, "SEQUENCE_VALUE_TOO_LARGE_FRACTION", "text", "A token is in too many sequences"),
    (75, "FEATURE_COVERAGE_TOO_LOW", "text", "Too little of the text is in the vocabulary"),
    (
        76,
        "FEATURE_COVERAGE_TOO_SHORT_AVG_TOKEN_LENGTH",
        "text",
        "The tokens of the vocabulary that occur are too short on average",
    ),
    (77, "NLP_WRONG_LOCATION", "text", "A token stands where it may not stand in a sequence"),
    (
        78,
        "EMBEDDING_SHAPE_INVALID",
        "count",
        "An embedding has another number of values than the schema says",
    ),
    (
        79,
        "MAX_IMAGE_BYTE_SIZE_EXCEEDED",
        "picture",
        "A picture has more bytes than the schema allows",
    ),
    (80, "INVALID_FEATURE_SHAPE", "count", "A feature is not of the shape that the schema says"),
    (81, "INVALID_DOMAIN_SPECIFICATION", "schema", "A domain of the schema contradicts itself"),
    (82, "MULTIPLE_REASONS", "schema", "TFDV gives several reasons at once and does not name them"),
    (
        83,
        "STATS_NOT_AVAILABLE",
        "schema",
        "The schema asks for something of which there are no statistics",
    ),
    (
        84,
        "DERIVED_FEATURE_BAD_LIFECYCLE",
        "schema",
        "A derived feature has a stage of life that it may not have",
    ),
    (
        85,
        "DERIVED_FEATURE_INVALID_SOURCE",
        "schema",
        "A derived feature comes from a feature that it may not come from",
    ),
    (86, "CUSTOM_VALIDATION", "schema", "A rule in SQL that came with the schema does not hold"),
    (
        87,
        "COMPARATOR_NORMALIZED_ABSOLUTE_DIFFERENCE_HIGH",
        "compare",
        "The counts of values differ by more than the comparator allows",
    ),
    (
        88,
        "BOOL_TYPE_INVALID_CONFIG",
        "schema",
        "The schema's words for true and false contradict each other",
    ),
)
"""Number and name in `AnomalyInfo.Type`, group, and what is the case."""


def anomaly_code(number: int) -> str:
    """The code of a type of anomaly: ``SCH114`` for 14."""
    return f"SCH{100 + number}"


def _code(number: int, name: str, group: str, summary: str) -> Code:
    about = GROUPS[group]
    paragraphs = [f"{summary}, over all examples of a split. {about.found}", about.cure]
    if about.of_records:
        paragraphs.append(
            f"Record by record it is {about.of_records}: where the validator `schema` runs as "
            "well, the places that it found are told here, too."
        )
    paragraphs.append(f"TFDV calls it `{name}`.")
    page = "\n\n".join(textwrap.fill(each, 100) for each in paragraphs) + "\n"
    rule = f"tfdv-{name.lower().replace('_', '-')}"
    return Code(anomaly_code(number), rule, Severity.ERROR, summary, about.hint, page)


UNKNOWN = Code(
    "SCH199",
    "tfdv-unknown",
    Severity.ERROR,
    "TFDV reports an anomaly of a type that this tfrecreg does not know",
    "its text says what it is; pip install --upgrade tfrecreg",
    """\
A newer TensorFlow Metadata has types of anomalies that were not there when this tfrecreg was made,
or TFDV itself calls the type unknown. The message is TFDV's own.
""",
)

ANOMALIES: dict[str, Code] = {
    anomaly_code(number): _code(number, name, group, summary)
    for number, name, group, summary in _TYPES
} | {UNKNOWN.code: UNKNOWN}
"""Code by its name."""

RECORD_CODES: dict[str, str] = {
    anomaly_code(number): GROUPS[group].of_records
    for number, _, group, _ in _TYPES
    if GROUPS[group].of_records
} | {anomaly_code(79): "SCH006"}
"""Code of an anomaly to the code under which the records that cause it are found."""
