"""Wrappers that test the contracts of stores on every call: for tests and simulations, and off in production."""
