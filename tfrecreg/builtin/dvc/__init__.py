"""Keeps the bytes of releases in DVC: push, pull, gc, and the stages of pipelines."""
