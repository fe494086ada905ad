"""The source `tfrecreg`: its raw data are versions of other datasets of the registry."""
