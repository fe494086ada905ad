"""Finding shards: from the user's words to a :class:`~tfrecreg.core.check.scan.interface.Target`,
the shards with their manifest, their indexes and the schema that they are held against.

A reference, the folder of a build, a copy of that, a URL of it and single shards of it come to the
same build, so that they are judged alike.
"""

from __future__ import annotations
