"""Long work on whole accounts, done beside no server: copying one from store to store."""
