"""Bound plan to generated Python."""
