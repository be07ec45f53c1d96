"""Item queries over the physical partitions of a container, one page at a time."""
