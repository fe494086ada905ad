"""Reading splits while a model trains: any record by its number, in any order, exactly once.

No TensorFlow. `tfrecreg.data_source`, in `tfrecreg.builtin.look`, finds what a target names and
makes the source.
"""
