"""A move of an item between partitions as a saga, and the reconciler of moves that did not come to an end."""
