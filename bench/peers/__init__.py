"""Pleiad beside other servers that speak the same protocol: ``python -m bench.peers`` (``make bench-peers``).

Invariants
- Each server has the core of the server and the load generator the other; one server is asked at a time.
- Rounds of Pleiad and of the peer alternate, and a ratio is the median of those of neighbouring rounds.
- Nobody waits for the disk: the peers keep items in memory, and Pleiad runs with ``--ephemeral``.
- An operation is measured on a server after one of its answers was looked at: what is wrong has no speed.

Map: ``shelf.py`` the peers and how they are got; ``operations.py`` the twelve operations; ``table.py`` the table.
"""
