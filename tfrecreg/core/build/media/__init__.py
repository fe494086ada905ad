"""Sounds and videos: what their headers say, and files as features of an example.

Nothing is decoded.
"""
