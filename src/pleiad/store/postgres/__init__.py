"""The PostgreSQL store: catalog and segments in one database that several servers may share."""
