"""Pages: HTML files that open anywhere, without a network.

- `make`: the operation: check targets and write a page about them
- `static_site`: the operation: pages about a whole registry, and their index
- `render`: the content of a page as HTML
- `charts`: charts as SVG
- `templates`: the HTML, the styles and the script of a page
"""

from __future__ import annotations
