"""The `annotations` validator: labels and objects, within a record and over whole splits.

- `label_features`: options, and which features are labels and lists of objects
- `class_labels`: names and counts of classes, from a manifest, a file or the records
- `visitor`: the labels and objects of the records of one shard
- `validator`: the classes of whole splits, and the findings
"""

from __future__ import annotations
