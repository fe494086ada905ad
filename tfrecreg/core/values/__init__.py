"""Data and small functions that all other packages use: errors, texts, references, configuration,
findings.
"""
