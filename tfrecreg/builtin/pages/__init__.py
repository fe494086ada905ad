"""Pages: HTML files that open anywhere, without a network."""
