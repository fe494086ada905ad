"""The bundled source `folder`: any files, by the suffixes of their names.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `source`: :class:`~tfrecreg_folder.source.FolderSource`, which lists and makes examples
- `folder_options`: the options of the source
- `found_files`: the files below the raw folder, with the links that are followed
- `grouping`: the items: files, or files of one stem; their splits, classes and features
"""
