"""Schemas: what the examples of a dataset have to be, and whether they are.

For whoever reads, checks or shows a schema. Nothing here imports TensorFlow, and protobuf only
when a schema is parsed::

    schema = parse_schema(text, "schemas/mnist.pbtxt")
    check = Checker(compile_contract(schema))
    check(example)  # (), or what is wrong with it

* :mod:`.model` - `Schema`, `Feature` and their parts: plain values
* :mod:`.proto` - text to `Schema`, by protobuf; `render_schema` for the way back
* :mod:`.rules`, :mod:`.composites`, :mod:`.locate` - what a schema may not say, and where in the
  text it says it
* :mod:`.build` - from protobuf's message to the plain values
* :mod:`.contract`, :mod:`.environments` - a schema compiled for records: picklable, without
  protobuf
* :mod:`.check`, :mod:`.values`, :mod:`.times`, :mod:`.groups`, :mod:`.distinct`,
  :mod:`.wording` - a record against a contract, and the messages
* :mod:`.swift` - the same for many records of one layout at once
* :mod:`.spec` - a schema as JSON, and as what `tf.io.parse_example` takes
* :mod:`.infer`, :mod:`.seen`, :mod:`.draft` - a draft of a schema from data
* :mod:`.differ` - two schemas, field by field
* :mod:`.compat`, :mod:`.within` - whether readers of one version parse records of another
* :mod:`.accept`, :mod:`.accept_values`, :mod:`.needed`, :mod:`.text_edit` - the change of a
  schema's text that takes in data which break it
"""

from __future__ import annotations

from tfrecreg.schema.check import Checker, Problem
from tfrecreg.schema.contract import Contract, FeatureRule, compile_contract
from tfrecreg.schema.infer import SchemaSketch
from tfrecreg.schema.model import (
    BoolDomain,
    Domain,
    Feature,
    FeatureType,
    FloatDomain,
    ImageDomain,
    IntDomain,
    OtherDomain,
    Presence,
    Schema,
    SparseFeature,
    StringDomain,
    StructDomain,
    TimeDomain,
    ValueCount,
    WeightedFeature,
)
from tfrecreg.schema.proto import parse_schema, render_schema
from tfrecreg.schema.spec import TensorSpec, schema_json, tensor_specs, tf_feature_spec, tf_source

__all__ = [
    "BoolDomain",
    "Checker",
    "Contract",
    "Domain",
    "Feature",
    "FeatureRule",
    "FeatureType",
    "FloatDomain",
    "ImageDomain",
    "IntDomain",
    "OtherDomain",
    "Presence",
    "Problem",
    "Schema",
    "SchemaSketch",
    "SparseFeature",
    "StringDomain",
    "StructDomain",
    "TensorSpec",
    "TimeDomain",
    "ValueCount",
    "WeightedFeature",
    "compile_contract",
    "parse_schema",
    "render_schema",
    "schema_json",
    "tensor_specs",
    "tf_feature_spec",
    "tf_source",
]
