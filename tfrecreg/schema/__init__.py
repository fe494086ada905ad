"""Schemas: the rules for the examples of a dataset, and the checks of these rules.

Nothing here imports TensorFlow, and protobuf only when a schema is parsed::

    schema = parse_schema(text, "schemas/mnist.pbtxt")
    check = Checker(compile_schema(schema))
    check(example)  # the problems of the example, () if there are none

* :mod:`.definition` - `Schema`, `Feature` and the other parts of a schema: plain values
* :mod:`.proto` - text to `Schema` by protobuf; `render_schema` for the way back
* :mod:`.consistency` - contradictions in a schema
* :mod:`.pbtxt` - where the text has each field, and edits that keep comments and layout
* :mod:`.compiled` - the declarations of one environment, for records;
  :mod:`.environments` chooses one
* :mod:`.check`, :mod:`.domain_check`, :mod:`.messages` - one record against a compiled schema
* :mod:`.vectorized` - many records of one layout at once
* :mod:`.spec` - a schema as JSON, and as the specification of `tf.io.parse_example`
* :mod:`.infer` - a draft of a schema from data
* :mod:`.differ` - the difference between two schemas, field by field
* :mod:`.compat` - whether readers of one version parse records of another
* :mod:`.accept` - the change of a schema with which data that break it pass
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.lazy import lazy_exports

if TYPE_CHECKING:
    from tfrecreg.schema.check import Checker, Problem
    from tfrecreg.schema.compiled import CompiledSchema, compile_schema
    from tfrecreg.schema.definition import (
        BoolDomain,
        Feature,
        FloatDomain,
        ImageDomain,
        IntDomain,
        OtherDomain,
        Schema,
        StringDomain,
        ValueCount,
    )
    from tfrecreg.schema.infer import SchemaSketch
    from tfrecreg.schema.proto import parse_schema, render_schema
    from tfrecreg.schema.spec import (
        TensorSpec,
        schema_json,
        tensor_specs,
        tf_feature_spec,
        tf_source,
    )

__all__ = [
    "BoolDomain",
    "Checker",
    "CompiledSchema",
    "Feature",
    "FloatDomain",
    "ImageDomain",
    "IntDomain",
    "OtherDomain",
    "Problem",
    "Schema",
    "SchemaSketch",
    "StringDomain",
    "TensorSpec",
    "ValueCount",
    "compile_schema",
    "parse_schema",
    "render_schema",
    "schema_json",
    "tensor_specs",
    "tf_feature_spec",
    "tf_source",
]

_EXPORTS = {
    ".check": ("Checker", "Problem"),
    ".compiled": ("CompiledSchema", "compile_schema"),
    ".definition": (
        "BoolDomain",
        "Feature",
        "FloatDomain",
        "ImageDomain",
        "IntDomain",
        "OtherDomain",
        "Schema",
        "StringDomain",
        "ValueCount",
    ),
    ".infer": ("SchemaSketch",),
    ".proto": ("parse_schema", "render_schema"),
    ".spec": ("TensorSpec", "schema_json", "tensor_specs", "tf_feature_spec", "tf_source"),
}
if not TYPE_CHECKING:  # which knows these names from above, and no others
    __getattr__ = lazy_exports(__name__, _EXPORTS)
