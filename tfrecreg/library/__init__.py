"""Defines the handles and their verbs, which are the public names of :mod:`tfrecreg`. The classes
extend the readers of :mod:`tfrecreg.core.registry`: they add operations as methods.
"""
