"""Indexing: what a container's policy says is indexed, and how many index terms an item has under it."""
