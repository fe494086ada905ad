"""Exporters: each writes a build or a release as a folder for another tool."""

from __future__ import annotations
