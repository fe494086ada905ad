"""Finding shards: from the user's words to a :class:`~tfrecreg.core.check.scan.interface.Target`,
the shards with their manifest, their indexes and the schema that they are held against.

A reference, the folder of a build, a copy of that, a URL of it and single shards of it come to the
same build, so that they are judged alike.

- `find`: the build or release that a word names, or the word itself where it names files
- `folder_build`: a build in a folder of no registry, by the manifest and the schema in it
- `files`: the files that paths, globs, folders and sets name, on a disk or behind URLs
- `target`: the target of a build, a release or files
- `raw_sizes`: the size of raw data, the base of inflation
"""

from __future__ import annotations
