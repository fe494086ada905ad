"""The bundled source `webdataset`: samples in tar files, as the library WebDataset reads them.

- `plugin`: announces the source, and recognizes tar files of samples
- `tars`: the members of a tar file by its headers
- `samples`: options; members to samples, samples to items; folders that `tfrecreg export` wrote
- `source`: :class:`~tfrecreg_webdataset.source.WebDatasetSource`
"""
