"""`tfrecreg plugins new`: the package of a plugin that works, to begin with."""
