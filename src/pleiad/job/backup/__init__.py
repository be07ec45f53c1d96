"""Backups of an account in SQLite: taking one beside a running server or of a directory at rest, and restoring it."""
