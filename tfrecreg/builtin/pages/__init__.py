"""Pages: HTML files that open anywhere, without a network.

Operations, which end in files:

The contents of a page, as data:

And how it looks:

- :mod:`tfrecreg.core.images.drawing`: colors of classes, drawings of records and charts as SVG
"""
