"""The bundled report formats. Names from data cannot break them.

The JSON of a report is :meth:`tfrecreg.core.check.reports.Report.to_json`, its text
:func:`tfrecreg.core.terminal.findings.print_report`, its page
:mod:`tfrecreg.builtin.pages.make`.
"""

from __future__ import annotations
