"""The bundled source `huggingface`: Parquet files as Hugging Face publishes datasets.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `recognition`: whether Parquet files are of the Hub, where no source is named
- `source`: :class:`~tfrecreg_huggingface.source.HuggingFaceSource`, which lists and makes examples
- `huggingface_options`: the options of the source
- `readme`: the header of `README.md`: configurations, features, license
- `hub_types`: images, class names and arrays, as the metadata or the README declare them
- `data_files`: the Parquet files of a configuration, their splits, and their footers
- `columns`: Arrow's types to features and their part of the schema
- `cells`: the values of one row as features
- `arrow`: pyarrow, imported when it is used
"""
