"""A registry: the folder that holds releases, schemas and builds, as files say it.

- `layout`: the location of everything, as paths relative to the registry's root
- `registry`: opening one, listing it, reading its manifests and schemas
- `lookup`: from a reference, or a stage in git's tags, to a manifest, a schema and a folder
- `schemas`: the schema that a build was made with, even if it changed since
- `absence`: missing datasets, and the command that fetches them
- `transaction`: the only module that changes published files; `beside` has those that accompany a
  build, `verify` compares bytes with a manifest, `output_folder` makes folders of the user's
- `keeper`: the protocol of DVC, which keeps the bytes of releases; `versions` keeps them without it
- `indexes`: the indexes of builds and releases
- `catalogs`: names of the files of catalogs, and which have a use
- `yanks`: releases that were yanked
- `chain`: how releases follow each other
- `audit`: whether releases are unchanged and follow each other, by their manifests and by git
- `lock`: keeping two commands from doing the same work
"""
