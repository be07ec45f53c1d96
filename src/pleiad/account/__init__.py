"""The keys of the account: what they are, what is signed with them, and the file they may be kept in."""
