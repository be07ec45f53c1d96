"""What is seen of an account at work: warnings and counts."""
