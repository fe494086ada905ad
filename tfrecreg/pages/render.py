"""The content of a page as one HTML file: styles, script and images are inside.

The page's own Content-Security-Policy forbids every request and everything that is not the styles
and the script below, which it names by their hashes. It works without the script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from tfrecreg._version import __version__
from tfrecreg.findings import Severity
from tfrecreg.operations.page.content import Bars, Page
from tfrecreg.pages.charts import bar_chart, number_of, scatter_chart
from tfrecreg.text import safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.operations.page.records import PageImage

_TEMPLATES = ("page.html.j2", "macros.html.j2")
_RANKS = {"error": 2, "warning": 1, "info": 0}


def render_page(page: Page) -> str:
    """The page as HTML. The same content gives the same bytes."""
    style, script = _text("page.css"), _text("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    html = (
        _environment()
        .get_template("page.html.j2")
        .render(
            page=page,
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            version=__version__,
        )
    )
    # Names may have bytes that were not UTF-8: they are lone surrogates here.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({name: _text(name) for name in _TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        size=si_bytes,
        chart=_chart,
        data_uri=_data_uri,
        shown=lambda text: safe(text, limit=400),
        lines=_lines,
        share=lambda number: f"{number:.4f}".rstrip("0").rstrip("."),
        count=lambda number: f"{number:,}",
        plural=_plural,
        amount=number_of,
    )
    environment.tests["bars"] = lambda chart: isinstance(chart, Bars)
    environment.globals["rank"] = _rank
    return environment


def _rank(severity: Severity) -> int:
    return _RANKS[severity.value]


def _chart(chart: Any) -> Markup:
    return bar_chart(chart) if isinstance(chart, Bars) else scatter_chart(chart)


def _data_uri(image: PageImage) -> str:
    return f"data:image/{image.format};base64,{base64.b64encode(image.data).decode('ascii')}"


def _plural(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}s" if number else f"no {noun}s"


def _lines(text: str) -> str:
    """A text of several lines, with escapes for what cannot be printed."""
    return "".join(
        each
        if each == "\n" or each.isprintable()
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def _hash(text: str) -> str:
    """The source expression of CSP 3, section 2.3.1, that allows `text` inline."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _text(name: str) -> str:
    folder = resources.files("tfrecreg.pages") / "templates"
    return (folder / name).read_text(encoding="utf-8")
