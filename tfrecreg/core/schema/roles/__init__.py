"""The roles of features: image, label, boxes; and what a payload is."""
