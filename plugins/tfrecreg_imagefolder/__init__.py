"""The bundled source `imagefolder`: images in folders that are named after their classes.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `plugin`: announces the source, and loads it only when it is used
- `source`: :class:`~tfrecreg_imagefolder.source.ImageFolderSource`, which lists and makes examples
- `imagefolder_options`: the options of the source; splits by fractions, the same on any machine
- `folder_walker`: files, folders and links, excluded files, and split folders
- `class_folders`: whether folders look like those of classes, where no source is named
- `listing`: all items of class folders, with their splits and labels
- `label_file`: the same for a flat folder with a label file

The schema is `imagefolder.pbtxt` (in the repository it is in `schemas/`).
"""
