"""The SQLite store: one file per segment, one for the catalog, group commit, WAL with synchronous=FULL."""
