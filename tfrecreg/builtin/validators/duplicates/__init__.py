"""The `duplicates` validator: the same image or record again, in one split or in two."""
