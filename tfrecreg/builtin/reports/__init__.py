"""The bundled report formats. Names from data cannot break them.

- `plugin`: announces them
- `junit`: test results, as Jenkins, GitLab and others read them
- `sarif`: SARIF 2.1.0, for code scanning
- `github`: annotations of GitHub Actions, and the summary of a job
- `markdown`: for the comment of a pull request

The JSON of a report is :meth:`tfrecreg.core.check.reports.model.Report.to_json`, its text
:func:`tfrecreg.core.terminal.render.findings.print_report`, its page
:mod:`tfrecreg.builtin.pages.report_format`.
"""

from __future__ import annotations
