"""Questions in SQL: the catalog of a target, and DuckDB over it.

- `cells`, `rows`, `boxes`: values of records as Arrow columns
- `visitor`: one shard in the pass of a scan; `cache`: the files that are kept of it
- `catalog`: the catalogs of all shards of a target, from the cache or made
- `columns`: the names and types of the columns of a target; `tables`: its tables as SQL
- `other_tables`: splits, findings, ledger
- `sql`: names and texts in SQL; `packages`: the imports of pyarrow and DuckDB
- `connection`: DuckDB without access to files; `ask`: a question and its answer
- `expectations`, `questions`: what a gate expects of answers, and the validator that asks;
  `plugin` announces it
- `answers`: the formats of an answer; `command`, `printed`: `tfrecreg query`;
  `suggestions`: questions to try
- `where`: a condition as a list of record numbers, for rooms that take records; `chosen`: a visitor
  over these records
"""
