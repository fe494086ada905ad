"""Reads splits while a model trains: records by their numbers, in any order, each exactly once.

Only `load` needs TensorFlow.
"""
