"""`tf.train.Example` without TensorFlow and without protobuf: reading, creating, and canonical
writing.

For code that creates examples (sources) or reads them (validators, digests, diffs)::

    payload = encode({"label": int64_feature(7), "image": bytes_feature(png)})
    decode(payload)["label"].values  # (7,)
    canonical(someone_elses_payload)  # the same bytes for the same content

* :mod:`.model` - `Feature`, `Kind`, `Example`
* :mod:`.features` - the constructors: `bytes_feature`, `float_feature`, `int64_feature`, …
* :mod:`.encode` - examples to canonical bytes
* :mod:`.decode` - bytes to examples, and `canonical`
* :mod:`.kinds` - the message type of a payload: an Example, a SequenceExample, an event, or another
* :mod:`.columns` - many payloads with the same layout at once, as columns, with NumPy
* :mod:`.tensors` - tensors in a value, as `tf.io.serialize_tensor` writes them
* :mod:`.values` - from Python values, arrays and images to features
* :mod:`.arrow` - imports pyarrow
* :mod:`.keys` - the key of a record, from a feature
* :mod:`.declared` - what a description beside the records says of a feature
* :mod:`.wire` - protobuf's wire format: varints and fields

The canonical form is a format that never changes: see "Canonical Example" in `docs/formats.md`.
"""
