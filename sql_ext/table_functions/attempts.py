"""`lakewarden_attempts`: the attempts at what is pending."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from lakewarden.procedures.declaring.caller import Caller
from lakewarden.procedures.declaring.declaration import Call, TablePath, procedure
from lakewarden.procedures.declaring.opening import open_table
from lakewarden.procedures.declaring.texts import moment_of


@procedure("lakewarden_attempts")
class Attempts(Call):
    """The attempts at what is pending; only the newest one at an instant can be live."""

    path: TablePath = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Row:
        instant: str
        service: str
        attempt: int
        owner: str
        host: str
        process: str
        engine_version: str
        started_at: datetime
        age_seconds: float | None
        is_newest: bool
        is_live: bool
        step: str | None
        done: int
        total: int
        last_beat_at: datetime | None
        expires_at: datetime | None

    def run(self, caller: Caller) -> Iterable[Row]:
        for one in open_table(caller, None, self.path).attempts():
            started_at = moment_of(one.started_at_ms)
            assert started_at is not None
            yield self.Row(
                instant=one.instant,
                service=one.service,
                attempt=one.attempt,
                owner=one.owner,
                host=one.host,
                process=one.process,
                engine_version=one.engine_version,
                started_at=started_at,
                age_seconds=one.age_seconds,
                is_newest=one.is_newest,
                is_live=one.is_live,
                step=one.step,
                done=one.done,
                total=one.total,
                last_beat_at=moment_of(one.last_heartbeat_at_ms),
                expires_at=moment_of(one.expires_at_ms),
            )
