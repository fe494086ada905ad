"""How records look, the same on a page, in a viewer and in a notebook: colors, boxes, masks."""
