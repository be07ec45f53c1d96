"""The benchmark of Pleiad: ``python -m bench`` (``make bench``) measures a real server against bars.

Invariants
- The server and the load generator are separate processes, each on a core of its own where there are two.
- Requests are bytes prepared and signed before the clock starts; nothing is formatted while it runs.
- Ratios compare rounds taken next to each other in one run, because absolute rates wander with the machine.
- A response with an unexpected status, or a lost connection, fails the run: a wrong answer has no speed.

Map
- ``scenarios/``   one file per family of scenarios, listed in ``scenarios.FAMILIES``
- ``load.py``      the load generator, in its own process
- ``yardstick.py`` the same HTTP loop answering a constant: what a request costs before any database work
- ``driver.py``    PostgreSQL through the driver alone, and through the store without a server
- ``server.py``    a real Pleiad child process on a temporary data directory, and its set-up through REST
- ``request.py``   signed request bytes; ``items.py`` the items; ``process.py`` cores, CPU time and memory
- ``report.py``    the table, ``build/bench.json``, and the tables of ``docs/performance.md``
"""
