"""`tf.train.Example` without TensorFlow and without protobuf: reading, creating, and canonical
writing.

For code that creates examples (sources) or reads them (validators, digests, diffs)::

    payload = encode({"label": int64_feature(7), "image": bytes_feature(png)})
    decode(payload)["label"].values  # (7,)
    canonical(someone_elses_payload)  # the same bytes for the same content

* :mod:`.model` - `Feature`, `Kind`, `Example`, `encode`, and protobuf's wire format
* :mod:`.values` - features from values, arrays and images: `int64_feature`, `to_example`, …
* :mod:`.decode` - bytes to examples, and `canonical`
* :mod:`.kinds` - the message type of a payload: an Example, a SequenceExample, an event, or another
* :mod:`.sequences` - the rules of a schema for SequenceExamples
* :mod:`.columns` - reads many payloads with the same layout into columns at once, with NumPy
* :mod:`.tensors` - tensors in a value, as `tf.io.serialize_tensor` writes them
* :mod:`.format_payload` - payloads as text

The canonical form is a format that never changes: see "Canonical Example" in `docs/formats.md`.
"""
