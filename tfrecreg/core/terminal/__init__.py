"""The parts of commands, for the package and for plugins."""
