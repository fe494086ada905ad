"""Components: how a dataset looks, the same on a page, on a site, in a viewer and in a notebook.

- `colors`: the color of a class, and the rule that gives it
- `drawing`: the objects of a record in fractions of its image, and the SVG that lies over the image
- `masks`: masks of objects that are run lengths or images
- `charts`: charts as data
- `svg`: charts as SVG
- `style`: `tokens.css`, the colors and fonts of all documents, for light and dark
"""
