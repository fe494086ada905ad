"""Handing a build or a release to other tools, as a folder of its own."""
