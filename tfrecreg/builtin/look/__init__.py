"""Shows datasets and records: list, show, log, explain, head, digest, snippets."""
