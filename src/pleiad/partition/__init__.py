"""Physical partitions: one range of hashes with its rows, and the map that finds the one a key belongs to."""
