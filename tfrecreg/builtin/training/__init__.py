"""Reading splits while a model trains: any record by its number, in any order, exactly once.

No TensorFlow. `tfrecreg.data_source`, in `tfrecreg.builtin.look`, finds what a target names and
makes the source.

- `data_source`: :class:`DataSource`, the sequence; `elements`: the form of its elements
- `shards`: the payloads of several shards under one number
- `kept_offsets`: where the records of shards without an index are
- `selection`, `split_words`: parts of splits, and the expressions that name them
- `pieces`: runs of records inside shards, and the share of a host that reads in sequence
- `arrays`, `sequence_arrays`, `element_blocks`, `image_arrays`: from payloads to NumPy
- `batches`: from elements to batches of arrays
- `order`: the share of a host in an epoch, and its state
- `block_order`: a shuffle by blocks; `far_ahead`: their records, fetched before they are read
- `certificate`: the proof that an epoch handed out every record exactly once;
  `proofs`: of a source
- `weights`: draws with replacement, by weights
- `image_sizes`: what size images get; `fitted_images`: by Pillow
- `mixtures`: several sources as one, by proportions
- `skipped`: damaged records that were left out, by all worker processes together
- `consumed`, `permutation`: the mathematics of these
"""
