"""Shows datasets and records: list, show, head, digest, snippets."""
