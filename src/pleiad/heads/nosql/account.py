"""The account: where to send requests, and how consistent reads are.

The endpoint is built from the request's own Host, so that clients behind port mapping find their way back, unless the
operator gave another name for it.
"""

from __future__ import annotations

import re
from typing import Any

from pleiad import charge
from pleiad.engine.consistency import Consistency
from pleiad.heads.http.host_names import HostNames
from pleiad.heads.nosql.call import Call
from pleiad.heads.nosql.render import resource_answer
from pleiad.server.http.failures import BAD_HEADER
from pleiad.server.http.message import Response

ACCOUNT_ID = "pleiad"
"""Never "localhost": the JavaScript client then forgets its endpoints and reads the account before every request."""

_QUERY_ENGINE = (
    '{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,'
    '"maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,'
    '"queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,'
    '"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,'
    '"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,'
    '"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"sqlDisableOptimizationFlags":0,'
    '"sqlAllowTop":true,"enableSpatialIndexing":true,"clientDisableOptimisticDirectExecution":false}'
)


_VERSION = b"x-ms-version"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LISTED = frozenset(
    f"{year}-{day}"
    for year, days in {
        2014: ("08-21",),
        2015: ("04-08", "06-03", "08-06", "12-16"),
        2016: ("05-30", "07-11", "11-14"),
        2017: ("01-19", "02-22", "05-03", "11-15"),
        2018: ("06-18", "08-31", "09-17", "12-31"),
    }.items()
    for day in days
)
_LISTED_UNTIL = max(_LISTED)
"""Later versions are taken as clients name them."""
_STALENESS = {"maxStalenessPrefix": 10, "maxIntervalInSeconds": 5}
"""The bounds of bounded staleness for one region: versions and seconds. On one machine no read comes near them."""


class AccountOperations:
    """The one operation on the account, which knows the names of the server."""

    def __init__(self, hosts: HostNames) -> None:
        self._hosts = hosts

    async def read(self, call: Call) -> Response:
        """The account document, for a version of the protocol that there is, or may be one day."""
        version = call.text(_VERSION)
        if version and (
            not _DATE.fullmatch(version) or (version <= _LISTED_UNTIL and version not in _LISTED)
        ):
            raise BAD_HEADER(name=_VERSION.decode(), value=version[:100], hint=" There is no such version.")
        # The name it was asked by, which the head has found to be one of the server's own.
        host = call.text(b"host") or "localhost"
        endpoint = f"{'https' if call.request.secure else 'http'}://{self._hosts.region(host)}/"
        # The region that the emulator says it is in, which programs written for it may name.
        location = {"name": "South Central US", "databaseAccountEndpoint": endpoint}
        # One, so that a client in direct mode asks once for a strong read, which is charged as the two it stands for.
        replicas = {"minReplicaSetSize": 1, "maxReplicasetSize": 1}
        account = {
            "_self": "",
            "id": ACCOUNT_ID,
            "_rid": "pleiad.documents.azure.com",
            "media": "//media/",
            "addresses": "//addresses/",
            "_dbs": "//dbs/",
            "writableLocations": [location],
            "readableLocations": [location],
            "enableMultipleWriteLocations": False,
            "enablePerPartitionFailoverBehavior": False,
            "continuousBackupEnabled": False,
            "enableNRegionSynchronousCommit": False,
            "userReplicationPolicy": {"asyncReplication": False, **replicas},
            "userConsistencyPolicy": _consistency_policy(call.engine.consistency),
            "systemReplicationPolicy": replicas,
            "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
            "queryEngineConfiguration": _QUERY_ENGINE,
        }
        return resource_answer(200, call, charge.Charge(()), account)


def _consistency_policy(level: Consistency) -> dict[str, Any]:
    bounds = _STALENESS if level is Consistency.BOUNDED_STALENESS else {}
    return {"defaultConsistencyLevel": level.word, **bounds}
