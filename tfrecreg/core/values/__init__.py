"""Data and small functions that everything uses: errors, texts, references, configuration,
findings."""
