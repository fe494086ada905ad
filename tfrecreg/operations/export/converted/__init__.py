"""Exports that hold the records in files of another format, one for each shard.

- `convert`: one shard in a worker: written, read again, and compared with the source
- `formats`: what a format is, and the table of formats
- `content`: the content digest of what was written, compared with the manifest; `tfrecreg.json`
- `arrayrecord`: ArrayRecord files, which hold payloads as they are
- `parquet`: Parquet files; `columns` has the columns of a schema, and their Arrow arrays
- `webdataset`: tar files of samples; `samples` has the members of a sample
- `parts`: what the formats of Examples share: decoded records, and their keys
- `file_objects`: files of a storage as Python's file objects
"""
