"""Folders of other tools, and the descriptions that they have beside their shards.

- `tfds_info`: the `dataset_info.json` of TensorFlow Datasets and RLDS: splits, shards, counts
- `tfds_features`: their `features.json`: the features of a record by their flat names
- `label_maps`: files of class names
- `label_files`: label maps that lie beside shards, and the feature that each is for
"""
