"""Random requests and queries from a seed: what the fuzz class of the attack suite and the fuzz tests both send."""
