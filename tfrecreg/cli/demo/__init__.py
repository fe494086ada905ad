"""What `tfrecreg demo` needs: raw data that this project draws itself, so that nothing is fetched.

- `digits`: writes a small dataset of drawn digits in MNIST's own format
- `strokes`: the shapes of the ten digits
- `run`: the whole workflow on them, step by step
"""
