"""Changing the physical partitions of a container: split, merge, rehome, and when they are due."""
