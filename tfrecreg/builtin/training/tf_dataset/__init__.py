"""Graphs of `tf.data` for :func:`tfrecreg.load`. None of these modules imports TensorFlow.

- `form`: the form of the elements, by the schema and the arguments of `load`
- `source`: numbered payloads of shards; damage becomes a mark, not an error
- `chosen`: the same of records that a condition selects, read by their offsets
- `elements`: batches of payloads to tensors: parse, decode, resize, pad; `sequences`: lists
- `fitted`: how decoded images come to one size
- `small_images`: small PNGs of a batch, together
- `single_images`: images of single elements, one by one
- `other_formats`: features that decoders of plugins read
- `checked`: errors that name shard, record and key, at no cost to sound records
- `plain`: functions that AutoGraph leaves alone
- `pipeline`: all of it in one dataset: shuffle, batch, cache, repeat, prefetch
"""
