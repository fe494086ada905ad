"""The command line. The command tree is the file tree: `tfrecreg schema show` is
`schema/show.py`."""
