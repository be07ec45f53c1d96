"""The hostile requests: what takes time or memory without end if a server lets it.

Each is one request that a caller with few rights may send. `queries` holds texts, `scripts` JavaScript, `shots` puts
them together with the routes they go to.
"""
