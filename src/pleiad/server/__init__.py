"""Listeners and their connections: TLS, limits, memory, life of the process; one room or file per kind of protocol.

It knows nothing of databases. A listener holds protocols, each of which knows its first bytes: HTTP is a room of its
own, plain TCP protocols stand on `tcp`.
"""
