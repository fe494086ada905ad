"""The parts of commands, for this package and for plugins."""
