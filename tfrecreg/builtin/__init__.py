"""The features of the project: rooms that use the same hooks as third-party plugins.

Each package is a room, and its `plugin` announces its features;
:mod:`tfrecreg.core.plugins.bundled` names the module of each `command`.
"""
