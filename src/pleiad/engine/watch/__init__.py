"""What is seen of an account at work: warnings, traffic, counts."""
