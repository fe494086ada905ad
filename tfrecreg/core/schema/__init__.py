"""Schemas: the rules for the examples of a dataset, and the checks of these rules.

Nothing here imports TensorFlow. Protobuf is imported only when a schema is parsed::

    schema = parse_schema(text, "schemas/mnist.pbtxt")
    check = Checker(compile_schema(schema))
    check(example)  # the problems of the example, () if there are none
"""
