"""Questions in SQL: the catalog of a target, and DuckDB over it."""
