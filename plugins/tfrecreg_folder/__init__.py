"""The bundled source `folder`: any files, by the suffixes of their names."""
