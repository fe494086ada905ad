"""The `annotations` validator: labels and objects, within a record and over whole splits.

- `label_features`: options, and which features are labels and lists of objects
- `class_labels`: counts of classes, and the names that the records give them
- `visitor`: the labels and objects of the records of one shard
- `validator`: the classes of whole splits, and the findings
"""
