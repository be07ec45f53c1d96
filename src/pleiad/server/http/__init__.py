"""HTTP/1.1: bytes to requests and responses to bytes, streamed answers, and the way from HTTP to WebSocket.

A handler is a coroutine function from `Request` to `Response`; routes, authentication and errors with sub-status belong
to the heads.
"""
