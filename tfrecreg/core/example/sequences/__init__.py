"""`tf.train.SequenceExample`: features of a whole sequence, the context, and lists of steps.

Everything that reads one begins here. Where records become elements, findings or tensors, one
module beside the code for Examples does it: `training.sequence_arrays`,
`validators.schema.sequences`, `operations.tf_dataset.sequences`.

* :mod:`.rules` - what a schema says of context and lists, in the form that TFX has for it
* :mod:`.read` - a payload to context and lists
* :mod:`.sketch` - a draft of a schema from payloads of either kind
"""
