"""The HTTP layer: bytes to requests and responses to bytes, TLS, limits, lifecycle.

It knows nothing of databases: a handler is a coroutine function from `Request` to `Response`, and everything
above it (routes, authentication, errors with sub-status) belongs to the heads.
"""
