"""Sounds and videos: what their headers say, and files as features of an example.

- `model`: :class:`~tfrecreg.media.model.MediaHeader`, and the error for an unreadable one
- `wav`, `flac`, `mp3`, `mp4`: the headers of one format each, strict and bounded
- `read`: finds the format by the first bytes
- `files`: raw files read as a whole
- `features`: a file of a known kind as features, and the part of a schema for them

Nothing is decoded, and nothing but the standard library is needed.
"""
