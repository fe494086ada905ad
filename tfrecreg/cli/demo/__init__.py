"""What `tfrecreg demo` needs: raw data that this project draws itself, so that nothing is
fetched."""
