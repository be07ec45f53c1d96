"""Backups over the admin API. A request says when and how many to keep, never where: that is the operator's to say."""

from __future__ import annotations

from typing import Any

from pleiad import errors
from pleiad.heads.admin.answer import check_names, json_answer
from pleiad.heads.http.call import HttpCall
from pleiad.job.backup.manifest import moment
from pleiad.job.backup.run import BackupRefusedError, BackupRun, Backups
from pleiad.server.http.message import Response

KEEP_MAX = 100_000
_NO_FOLDER = "This server has no folder for backups: start it with --backup-dir."
_POSTGRES = "This account is in PostgreSQL: back it up with pg_basebackup or pg_dump, while its servers run."


class BackupOperations:
    """Listing and taking backups; `backups` is None where the server has nowhere to put them."""

    def __init__(self, backups: Backups | None) -> None:
        self._backups = backups

    async def create(self, call: HttpCall) -> Response:
        """Begins a backup, which goes on behind the answer."""
        backups = self._available(call)
        body = call.json_object() if call.request.body else {}
        check_names(body, frozenset({"keep"}))
        try:
            run = backups.start(_keep(body.get("keep")))
        except BackupRefusedError:
            raise errors.BACKUP_UNDER_WAY(name=backups.run.name if backups.run else "") from None
        return json_answer(call, _run(run), 202)

    async def list_all(self, call: HttpCall) -> Response:
        """The whole backups, the oldest first, and the one under way or asked for last."""
        backups = self._available(call)
        answer: dict[str, Any] = {"backups": [each.summary() for each in await backups.all()]}
        if backups.run is not None:
            answer["run"] = _run(backups.run)
        return json_answer(call, answer)

    async def read(self, call: HttpCall) -> Response:
        """One backup, whole or under way."""
        backups = self._available(call)
        name = call.segments[3]
        run = backups.run
        if run is not None and run.name == name:
            return json_answer(call, _run(run))
        for each in await backups.all():
            if each.name == name:
                return json_answer(call, each.summary())
        raise errors.RESOURCE_NOT_FOUND(kind="backup", id=name[:100])

    def _available(self, call: HttpCall) -> Backups:
        if self._backups is not None:
            return self._backups
        raise errors.BAD_REQUEST(reason=_POSTGRES if call.engine.store.is_shared else _NO_FOLDER)


def _keep(given: Any) -> int | None:
    if given is None:
        return None
    if type(given) is not int or not 1 <= given <= KEEP_MAX:
        raise errors.BAD_REQUEST(reason=f"'keep' must be a whole number from 1 to {KEEP_MAX}.")
    return given


def _run(run: BackupRun) -> dict[str, Any]:
    if run.made is not None:
        return {**run.made.summary(), "removed": run.removed}
    answer = {
        "name": run.name,
        "state": "failed" if run.failure else run.progress.stage.value,
        "beganAt": moment(run.began_at),
        "bytesDone": run.progress.done_bytes,
        "bytesTotal": run.progress.total_bytes,
    }
    return {**answer, "problem": run.failure} if run.failure else answer
