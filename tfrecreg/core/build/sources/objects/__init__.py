"""Objects in images, as every source of annotated images writes them.

Each name is for plugins, which import it from :mod:`tfrecreg.api`. A source collects what it finds
in one image and takes the features of it, so that a dataset in several formats has equal records.
"""
