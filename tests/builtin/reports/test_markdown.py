"""Markdown: read by a parser of it, in which nothing from data may be anything but text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hostile_support import NAMES, hostile_finding, hostile_report
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tfrecreg.builtin.reports.formats import code, markdown

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = re.compile(r"<br>|</?code>")
SPECIAL = re.compile(r"@|https?:|www\.|(?<!\w)#\d|\bGH-\d|\b[0-9a-f]{7,40}\b|[<>|]")
"""What GitHub makes a link or a mention of, outside of code."""


def inline(text: str) -> list[Token]:
    tokens = PARSER.parse(text)
    return [child for token in tokens for child in token.children or []]


def harmless(text: str) -> list[Token]:
    tokens = PARSER.parse(text)
    kinds = {token.type for token in tokens}
    assert not kinds & {"html_block", "fence", "code_block", "blockquote_open", "hr"}, kinds
    children = [child for token in tokens for child in token.children or []]
    for child in children:
        assert child.type in ("text", "code_inline", "html_inline"), child
        if child.type == "html_inline":
            assert OURS.fullmatch(child.content)
        if child.type == "text":
            assert not SPECIAL.search(child.content), child.content
    return tokens


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_no_name_means_anything(number: int) -> None:
    text = markdown([hostile_report(NAMES[number], target=NAMES[number])])
    assert len(text) < 30_000
    assert all(line.isprintable() for line in text[:-1].split("\n"))
    assert text.splitlines() == text[:-1].split("\n")
    tokens = harmless(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("heading_open") == 1
    assert kinds.count("table_open") == 2
    assert kinds.count("tr_open") == (1 + 2) + (1 + 1)
    assert kinds.count("td_open") == 4 * 2 + 4
    assert kinds.count("list_item_open") == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_code_span_shows_the_name(name: str) -> None:
    from tfrecreg.core.values.text import safe_message

    shown = safe_message(name, limit=1000)
    if not shown.strip(" "):
        harmless(f"a {code(name)} b")
        return
    table = f"| a |\n|---|\n| {code(name)} |\n"
    (cell,) = [token for token in PARSER.parse(table) if token.type == "inline"][1:]
    assert [(child.type, child.content) for child in cell.children or []] == [
        ("code_inline", shown)
    ]


def test_a_report_whole() -> None:
    text = markdown([hostile_report("a")])
    assert text == (
        "- digits 2.0.0 (major after 1.0.0): a\n"
        "\n"
        "### `digits`: incomplete\n"
        "\n"
        "1 error, 1 warning, 1 waived. 1 shard, 2 records, 3 B. Validators: `crc`, `manifest`.\n"
        "\n"
        "| | code | what | where |\n"
        "|---|---|---|---|\n"
        "| error | `CRC002` | ``the class `a` is a``<br>mend a | "
        "``a, record 3, offset 99, key a: expected `a`, found a (TensorFlow stops here)``<br>"
        "``a, record 3, offset 99, key a: expected `a`, found a (TensorFlow stops here)``<br>"
        "`… and 28 more` |\n"
        "| warning | `SHD006` | the names disagree: a `a`<br>a |  |\n"
        "\n"
        "| waived | by | until | because |\n"
        "|---|---|---|---|\n"
        "| `CRC002:digits:a:a:a` | `aa` | 2031-01-31 | ba |\n"
        "\n"
        "- incomplete: `` `a` was not read ``\n"
        "- not run: `schema`, no schema at a\n"
        "- the gate lowered severities: a from error to warning (2 findings)\n"
        "\n"
    )


def test_a_comment_holds_it_however_much_was_found() -> None:
    many = tuple(hostile_finding(f"{number}") for number in range(1000))
    text = markdown([replace(hostile_report("a"), findings=many, waived=many)])
    assert len(text) < 65_536
    told = re.search(r"… and (\d+) more findings", text)
    assert told is not None
    assert text.count("| error | `CRC002` |") == 1000 - int(told[1]) > 20
