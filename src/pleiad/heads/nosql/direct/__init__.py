"""Direct mode: the Java and .NET clients' default. Items travel in binary frames over TCP, all else as ever over HTTPS.

A frame stands for a REST request. `addresses` tells clients where to send frames, `requests` makes the request of a
frame, `place` sees to it that the client knows the container and its ranges as they are, and `answers` makes a frame of
the answer. Between them works the same head, so no operation is written here.
"""
