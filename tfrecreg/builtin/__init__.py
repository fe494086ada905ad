"""The features of tfrecreg, as packages that use the same hooks as third-party plugins.

Each package announces its features with hooks. :mod:`tfrecreg.core.plugins.bundled` names the
module of each command.
"""
