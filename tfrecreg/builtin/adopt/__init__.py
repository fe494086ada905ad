"""Adopting TFRecords that another tool wrote: a build with the same bytes."""
