"""What continuation tokens say: with what the next page of each kind begins."""
