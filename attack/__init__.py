"""The attack suite: real servers, attacked for real, and figures of what held.

`python -m attack` starts `pleiad serve` as a process on each store, runs every class of attack against it and prints a
table; it ends with 1 when a promise of `docs/security.md` does not hold. A class is one file in `classes/`; the tests
of `tests/proofs/attack/` run the same classes with small settings. Everything stays on this machine.
"""
