"""The official client at work while physical partitions split and merge, and while the server is killed doing it."""
