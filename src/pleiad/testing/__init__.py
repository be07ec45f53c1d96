"""A database for the tests of a Python team: `pleiad.start()` and the pytest fixtures."""
