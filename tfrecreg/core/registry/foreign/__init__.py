"""Folders of other tools, and the descriptions that they have beside their shards."""
