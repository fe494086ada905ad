"""The bar as a terminal shows it."""

from __future__ import annotations

from tfrecreg.core.terminal.progress_bar import ProgressBar


def test_the_bar_has_counts_and_bytes(terminal) -> None:
    def render(console) -> None:
        bar = ProgressBar(console, "building a\x1bb", 8, "records")
        bar.advance(3, 1500)
        bar.advance(5, 500)
        bar.stop()

    shown = terminal(render, 100)
    assert "building a\\x1bb " + "━" * 16 + " 8/8 records 2.0 kB" in shown
