"""A signed client of a running server, for the command line and the test kit."""
