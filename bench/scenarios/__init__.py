"""The families of scenarios, in the order they run.

A family is one module with one function that takes the settings of the run and the load generator and returns
its report. To add one: write the module, and name it here.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.load import LoadProcess
from bench.report import FamilyReport
from bench.scenarios import (
    advise,
    checksum,
    copy,
    direct,
    feed,
    governor,
    language,
    point,
    postgres,
    postgres_scan,
    query,
    split,
    transactions,
    workload,
)
from bench.settings import Settings

Family = Callable[[Settings, LoadProcess], FamilyReport]

FAMILIES: dict[str, Family] = {
    "point": point.run,
    "direct": direct.run,
    "language": language.run,
    "checksum": checksum.run,
    "query": query.run,
    "feed": feed.run,
    "transactions": transactions.run,
    "governor": governor.run,
    "split": split.run,
    "copy": copy.run,
    "postgres": postgres.run,
    "postgres_scan": postgres_scan.run,
    "workload": workload.run,
    "advise": advise.run,
}
