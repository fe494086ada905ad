"""Pages: HTML files that open anywhere, without a network.

Operations, which end in files:

- `make`: check targets and write a page about them
- `static_site`: pages about a whole registry, and their index
- `plugin`: announces the report format `html`, which is in `report_format`

The contents of a page, as data:

- `collect`: check targets, survey their records in the same pass, and fill a page
- `content`: the page as data
- `survey`: counts and a sample of the records, from the pass of the check
- `records`: records and their images as a page shows them
- `difference`: two versions, with the records that differ
- `looks`: the darkest, lightest and least sharp images of the sample
- `overview`: the six numbers at the top
- `features`: what is counted of features
- `charts`: the numbers as charts
- `budget`: the size of a page

And how it looks:

- `render`: the content of a page as HTML
- :mod:`tfrecreg.core.images.drawing`: colors of classes, drawings of records and charts as SVG
- `templates`: the HTML, the styles and the script of a page
"""
