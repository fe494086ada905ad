"""Files behind URLs, through fsspec."""
