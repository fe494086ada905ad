"""The source `tfrecreg`: its raw data are versions of other datasets of the registry.

- `derived_options`: its options
- `parents`: from the references to the shards, schemas and label maps of the parents
- `classes`: label maps merged by name, and the changes of class numbers, names and objects
- `feature_choice`: features that are kept, dropped and renamed
- `schemas`: the schemas of the parents as one
- `selection`: the selected records
- `reading`: records by their places
- `source`: the source itself; `plugin` announces it
"""
