"""Local plugins: Python files in a registry, outside any distribution."""
