"""The page of a finding code, in a pipe and on a terminal."""

from __future__ import annotations

from dataclasses import replace

from tfrecreg.builtin.look.explain_command import print_code, print_codes
from tfrecreg.core.values.findings import Code, Severity, TensorflowOutcome

CODE = Code(
    "TXT001",
    "too-short",
    Severity.WARNING,
    "A text has too few words",
    "look at it",
    """\
Texts of very few words are more often titles
than sentences.

The second paragraph.
""",
)


def test_a_page_in_a_pipe_is_as_it_was_written(pipe) -> None:
    assert (
        pipe(lambda console: print_code(console, CODE))
        == """\
TXT001 too-short (warning)
A text has too few words.

Texts of very few words are more often titles
than sentences.

The second paragraph.

hint: look at it
"""
    )


def test_a_page_fits_the_terminal(terminal) -> None:
    assert (
        terminal(lambda console: print_code(console, CODE), 30)
        == """\
TXT001 too-short (warning)
A text has too few words.

Texts of very few words are
more often titles than
sentences.

The second paragraph.

hint: look at it
"""
    )


def test_what_tensorflow_does_has_its_line(pipe) -> None:
    outcomes = (TensorflowOutcome.STOPS, TensorflowOutcome.READS)
    shown = pipe(lambda console: print_code(console, replace(CODE, tensorflow=outcomes)))
    assert shown.splitlines()[-2:] == [
        "TensorFlow: stops here or reads without an error",
        "hint: look at it",
    ]


def test_all_codes_in_a_table(pipe) -> None:
    assert (
        pipe(lambda console: print_codes(console, [CODE]))
        == """\
code    severity  summary
TXT001  warning   A text has too few words
"""
    )
