"""`tfrecreg view`: a local web application that shows every record of a dataset."""
