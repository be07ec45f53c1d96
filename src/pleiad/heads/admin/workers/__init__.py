"""A server of several worker processes that answers as one: what they ask each other, share and add up."""
