"""How Pleiad is measured against the official clients: their own test suites, run against a real server.

`python -m conformance.python_suite` runs the suite of the Python client and writes docs/compatibility.md;
`python -m conformance.javascript.run` runs our operation check written with the JavaScript client.
Everything downloaded or produced stays under build/; nothing here is part of the server.
"""
