"""`tf.train.Example` without TensorFlow and without protobuf: read, make, write canonically.

For whoever makes examples (sources) or looks into them (validators, digests, diffs)::

    payload = encode({"label": int64_feature(7), "image": bytes_feature(png)})
    decode(payload)["label"].values  # (7,)
    canonical(someone_elses_payload)  # the same bytes for the same content

* :mod:`.model` - `Feature`, `Kind`, `Example`, and the error of what is no example
* :mod:`.features` - the constructors: `bytes_feature`, `float_feature`, `int64_feature`, …
* :mod:`.encode` - examples to canonical bytes
* :mod:`.decode` - bytes to examples, and `canonical`
* :mod:`.quick` - how `decode` reads what encoders write
* :mod:`.payload` - how `decode` reads everything else, by all of protobuf's rules
* :mod:`.sequence` - bytes to a `tf.train.SequenceExample`
* :mod:`.kinds` - what a payload is: an Example, a SequenceExample, an event, something else
* :mod:`.layout` - many payloads of one layout at once, as columns, with NumPy
* :mod:`.varint` - protobuf's variable-length integers
* :mod:`.tensors` - tensors that `tf.io.serialize_tensor` put into a value

The canonical form is a format that never changes: see "Canonical Example" in `docs/formats.md`.
"""

from __future__ import annotations

from tfrecreg.example.decode import canonical, decode, decode_or_none
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.example.model import Example, Feature, Kind, NotAnExampleError

__all__ = [
    "Example",
    "Feature",
    "Kind",
    "NotAnExampleError",
    "bytes_feature",
    "canonical",
    "decode",
    "decode_or_none",
    "encode",
    "float_feature",
    "int64_feature",
    "unset_feature",
]
