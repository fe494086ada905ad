"""Sounds and videos: what their headers say, and files as features of an example.

- `read`: the format by the first bytes, and the header by tinytag (the extra `media`)
- `files`: raw files read as a whole
- `features`: a file of a known kind as features, and the part of a schema for them

Nothing is decoded.
"""
