"""Operations on schemas.

- `find`: the schema of a name
- `compare`: diff two of them, check whether readers of one version parse records of another
- `lists`: the latter for the lists of SequenceExamples
- `infer`: draft a schema from records
- `accept`: change a schema so that data which break it pass
"""
