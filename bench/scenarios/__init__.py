"""The families of scenarios, in the order they run.

A family is one module with one function that takes the settings of the run and the load generator and returns
its report. To add one: write the module, and name it here.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.load import LoadProcess
from bench.report import FamilyReport
from bench.scenarios import checksum, feed, governor, language, point, postgres, query, split, transactions
from bench.settings import Settings

Family = Callable[[Settings, LoadProcess], FamilyReport]

FAMILIES: dict[str, Family] = {
    "point": point.run,
    "language": language.run,
    "checksum": checksum.run,
    "query": query.run,
    "feed": feed.run,
    "transactions": transactions.run,
    "governor": governor.run,
    "split": split.run,
    "postgres": postgres.run,
}
