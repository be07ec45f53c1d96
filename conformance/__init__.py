"""How Pleiad is measured against the official clients: their own test suites, run against a real server.

`python -m conformance.python_suite` runs the suite of the Python client and writes docs/compatibility.md;
`python -m conformance.clients` runs our own programs over the official clients, a folder each (`go`, `java`, ...).
Everything downloaded or produced stays under build/; nothing here is part of the server.
"""
