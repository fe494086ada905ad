"""The `annotations` validator: labels and objects, within a record and over whole splits.

- `options`: what may be asked of it
- `names`: which features are labels and lists of objects, as TensorFlow's models call them
- `label_map`: what numbers of classes are called, from a manifest or a file
- `objects`: what is wrong with the objects of one record
- `classes`: how often each class is there, and what it is called
- `part`: what a shard hands back
- `visitor`: looks at the records of one shard
- `validator`: what only whole splits tell, and the findings
"""

from __future__ import annotations

from tfrecreg.validators.annotations.validator import AnnotationsValidator

__all__ = ["AnnotationsValidator"]
