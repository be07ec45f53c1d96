"""Moves between partitions whose movers and reconcilers are killed."""
