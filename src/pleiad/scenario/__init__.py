"""Scenarios: well-known workloads run with a good and a bad partition key on a real server, to be looked at.

A scenario is one file of `shelf/`: its items, its requests and the keys to compare, declared as data, and what is
claimed to happen. `run` does it on a server whose limits are scaled down and whose throughput is measured by a clock
that the run turns, so the same seed gives the same figures on any machine.
"""
