"""The content of pages that show targets, their findings and their records.

- `run`: the operation: check, survey, and fill a page
- `content`: the page as data, which `tfrecreg.pages` renders
- `survey`: counts and a sample of the records, from the pass of the check
- `records`: records and their images as a page shows them
- `masks`: masks of objects that are run lengths or images
- `difference`: two versions, with the records that differ
- `looks`: the darkest, lightest and least sharp images of the sample
- `charts`: the numbers as charts
- `budget`: the size of a page
"""

from __future__ import annotations
