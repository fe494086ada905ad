"""Reading splits while a model trains: any record by its number, in any order, exactly once.

Only `load` needs TensorFlow.
"""
