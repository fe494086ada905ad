"""Adopts TFRecords that another tool wrote: makes a build with the same bytes."""
