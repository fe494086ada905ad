"""The validator `changes`: what may change since the version before."""
