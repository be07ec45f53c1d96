"""What can be told of a filter without an item: which keys it can be true for, and whether it ever can."""
