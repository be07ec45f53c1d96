"""Partition keys: the path, the value, its hash (the effective partition key, epk) and ranges of hashes."""
