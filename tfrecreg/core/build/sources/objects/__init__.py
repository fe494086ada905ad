"""Objects in images, as every source of annotated images writes them.

Each name is for plugins, which import it from :mod:`tfrecreg.api`. A source collects what it finds
in one image and takes the features of it, so that a dataset in several formats has equal records:

- `images`: the features of the image itself; files that cannot be read as images
- `listing`: the files of the raw data, links followed; paths that annotations name
- `options`: the options that all such sources have
- `view`: one image as its annotations see it, and the remarks on it
- `boxes`: boxes with label and area
- `shapes`: keypoints and polygons of objects
"""
