"""Copies of containers: another partition key, other unique keys, another name, in the background of a server."""
