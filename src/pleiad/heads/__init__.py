"""Heads: one folder per protocol. A head translates; it decides nothing."""
