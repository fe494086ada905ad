"""Schemas: the rules for the examples of a dataset, and the checks of these rules.

Nothing here imports TensorFlow, and protobuf only when a schema is parsed::

    schema = parse_schema(text, "schemas/mnist.pbtxt")
    check = Checker(compile_schema(schema))
    check(example)  # the problems of the example, () if there are none

* :mod:`.definition` - `Schema`, `Feature` and the other parts of a schema: plain values
* :mod:`.proto` - text to `Schema` by protobuf; `canonical_text` for the way back
* :mod:`.consistency` - contradictions in a schema
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
