"""Reads folders of other tools, and the descriptions that these tools write beside their shards."""
