"""Reading records by their number."""
