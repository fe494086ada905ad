"""The bundled source `table`: the rows of CSV, TSV, JSON Lines and Parquet files."""
