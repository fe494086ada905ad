"""The validator `schema`: every record against the schema.

`validator` decides whether it applies, and is the only module that a check without a schema loads;
`records` compares the records of a shard with the compiled schema, and judges whole splits;
`sequences` does so for SequenceExamples.
"""
