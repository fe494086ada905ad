"""Mixes several sources into one, in given proportions. `tfrecreg.mixture` opens the members."""
