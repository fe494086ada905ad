"""Reports as documents for other programs. Names from data cannot break them.

- `junit`: test results, as Jenkins, GitLab and others read them
- `sarif`: SARIF 2.1.0, for code scanning
- `github`: annotations of GitHub Actions, and the summary of a job
- `markdown`: for the comment of a pull request
- `html`: a page, without the records that `check --format html` shows

The JSON of a report is :meth:`tfrecreg.operations.check.Report.to_json`, its text
:func:`tfrecreg.render.findings.print_report`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfrecreg.cli.render.formats.github import workflow_commands
from tfrecreg.cli.render.formats.html import html
from tfrecreg.cli.render.formats.junit import junit
from tfrecreg.cli.render.formats.markdown import markdown
from tfrecreg.cli.render.formats.sarif import sarif
from tfrecreg.reports.model import Report

FORMATS: Mapping[str, Callable[[Sequence[Report], str], str]] = {
    "junit": junit,
    "sarif": sarif,
    "github": workflow_commands,
    "markdown": markdown,
    "html": html,
}
"""The writer of each format. It takes reports, and the path of their registry (empty for the
current folder)."""
