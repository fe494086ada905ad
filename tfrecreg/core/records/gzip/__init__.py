"""Records in gzip files: reading, writing, and reading by number."""
