"""Components: how a dataset looks, the same on a page, on a site, in a viewer and in a notebook."""
