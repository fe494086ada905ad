"""Local plugins: Python files in a registry, outside any distribution.

- `find`: from the files that `[plugins] local` names to announced records; which of them may run
- `command`: `tfrecreg plugins trust`
"""
