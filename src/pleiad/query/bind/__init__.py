"""Syntax tree to bound plan: names become slots, calls are checked, and what the service refuses is refused."""
