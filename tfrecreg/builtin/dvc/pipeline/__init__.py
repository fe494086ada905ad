"""The stages of a DVC pipeline and its artifacts.

Nothing here imports DVC: writing the pipeline, and checking it in CI, works without it.
"""
