"""Advice on the partition key of a container by a running server: read here, worked out in a process beside it."""
