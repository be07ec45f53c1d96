"""A seeded simulation of splits, merges and rehomes under load, with crashes at any step."""
