"""Looking at datasets and records: list, show, head, digest, snippets."""
