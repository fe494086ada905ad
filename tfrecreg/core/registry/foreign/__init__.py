"""Reads folders of other tools, and the descriptions that these tools write next to shards."""
