"""A registry: the folder with releases, schemas and builds, and the files that describe them."""
