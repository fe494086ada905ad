"""The bundled source `webdataset`: samples in tar files, as the library WebDataset reads them.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `recognition`: whether tar files hold samples, where no source is named
- `source`: :class:`~tfrecreg_webdataset.source.WebDatasetSource`, which lists and makes examples
- `webdataset_options`: the options of the source
- `tar_members`: the members of a tar file by its headers, damage and links among them
- `listing`: members to samples, samples to items, and what is skipped or left out
- `member_values`: the features of a member by its suffix, and their part of the schema
- `class_names`: the names of classes in a file beside the shards
- `exported`: folders that `tfrecreg export --to webdataset` wrote, whose records are restored
"""
