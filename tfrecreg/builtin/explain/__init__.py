"""Explanations of finding codes.

- `command`: its argument; `printed`: a code with its page, and all codes
"""
