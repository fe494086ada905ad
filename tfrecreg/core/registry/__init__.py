"""A registry: the folder that holds releases, schemas and builds, as files say it."""
