"""Scripts at work: stored procedures and triggers, and what they do to the database."""
