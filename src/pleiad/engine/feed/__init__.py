"""Reading a container along: its items in pages, and its change feeds."""
