"""Several sources as one, by proportions. `tfrecreg.mixture` opens the members."""
