"""Services: none of them changes what rows a table has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from lakewarden import InvalidRequest, Table
from lakewarden.engine.services.inspection.state.plans import PendingPlan
from lakewarden.engine.write.settings import BESIDE
from lakewarden.table_service_handle import Plan, TableServiceHandle
from tests.histories.operation import Call
from tests.histories.rows import given, upserted
from tests.histories.table_model import Past
from tests.histories.writes import briefly

CLUSTERINGS: tuple[dict[str, object], ...] = (
    {},
    {"hoodie.clustering.plan.strategy.sort.columns": "v"},
    {"hoodie.clustering.plan.strategy.max.num.groups": "1"},
)
SERVICES = ("compaction", "log_compaction", "clustering")


def _door(table: Table, service: str) -> TableServiceHandle:
    found = {
        "compaction": lambda: table.compaction,
        "log_compaction": lambda: table.log_compaction,
        "clustering": lambda: table.clustering,
    }[service]()
    assert isinstance(found, TableServiceHandle)
    return found


def _is_possible(past: Past, service: str) -> bool:
    if service == "clustering":
        return past.kind.index != "BUCKET"
    return past.kind.is_mor


@dataclass(frozen=True, slots=True)
class Run:
    """A service planned and carried out."""

    name: str
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not _is_possible(past, self.name):
            return None
        options = dict(chance.choice(CLUSTERINGS)) if self.name == "clustering" else {}
        cancellable = chance.random() < 0.5 if self.name == "clustering" else None
        return Call(
            text=f"{self.name} {options or ''}",
            act=lambda table: _done(
                _door(table, self.name).schedule_and_run(cancellable, options=options)
            ),
        )


def _done(result: object) -> object:
    """What has been done; a plan that failed is an error."""
    for failure in getattr(result, "failures", ()):
        raise failure.cause
    return result


@dataclass(frozen=True, slots=True)
class Schedule:
    """A plan that others may carry out later, or take back."""

    name: str = "schedule"
    weight: int = 5

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        service = chance.choice(SERVICES)
        if not _is_possible(past, service):
            return None
        cancellable = chance.random() < 0.6

        def learns(past: Past, answer: object) -> None:
            if isinstance(answer, Plan):
                past.plans = {**past.plans, answer.instant: service}

        return Call(
            text=f"schedule {'cancellable ' if cancellable else ''}{service}",
            act=lambda table: _door(table, service).schedule(cancellable),
            learns=learns,
        )


@dataclass(frozen=True, slots=True)
class RunPlan:
    name: str = "run plan"
    weight: int = 5

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.plans:
            return self._on_a_new_plan(past, chance)
        plan = chance.choice(sorted(past.plans))
        service = past.plans[plan]
        return Call(
            text=f"run {service} {plan}",
            act=lambda table: _run_if_pending(table, service, plan),
            effect=lambda past: _forget(past, plan),
        )

    def _on_a_new_plan(self, past: Past, chance: Random) -> Call | None:
        """Without a plan that waits one is made, or this would hardly ever be played."""
        service, is_cancellable = chance.choice(SERVICES), chance.random() < 0.6
        if not _is_possible(past, service):
            return None

        def act(table: Table) -> object:
            plan = _door(table, service).schedule(is_cancellable)
            return _run_if_pending(table, service, plan.instant) if isinstance(plan, Plan) else None

        return Call(text=f"schedule and run {service}", act=act)


def _run_if_pending(table: Table, service: str, plan: str) -> object:
    """A plan that somebody has needed to be out of the way is no more."""
    door = _door(table, service)
    if plan not in {one.instant for one in door.pending()}:
        return None
    return _done(door.run(plan))


def _forget(past: Past, plan: str) -> None:
    past.plans = {instant: name for instant, name in past.plans.items() if instant != plan}


@dataclass(frozen=True, slots=True)
class CancelPlan:
    name: str = "cancel plan"
    weight: int = 4

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.plans:
            return self._of_a_new_plan(past, chance)
        plan = chance.choice(sorted(past.plans))
        service = past.plans[plan]

        def act(table: Table) -> object:
            is_pending = plan in {one.instant for one in _door(table, service).pending()}
            return table.cancel(plan, force=True) if is_pending else None

        return Call(text=f"cancel {plan}", act=act, effect=lambda past: _forget(past, plan))

    def _of_a_new_plan(self, past: Past, chance: Random) -> Call | None:
        """The same for a plan that is called off."""
        service, is_cancellable = chance.choice(SERVICES), chance.random() < 0.6
        if not _is_possible(past, service):
            return None

        def act(table: Table) -> object:
            plan = _door(table, service).schedule(is_cancellable)
            return table.cancel(plan.instant, force=True) if isinstance(plan, Plan) else None

        return Call(text=f"schedule and cancel {service}", act=act)


@dataclass(frozen=True, slots=True)
class Clean:
    """A clean by one of its policies, which keeps little."""

    name: str
    weight: int = 2

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        kept = chance.choice((1, 1, 2, 3))
        key = {
            "clean commits": "hoodie.clean.commits.retained",
            "clean versions": "hoodie.clean.fileversions.retained",
            "clean hours": "hoodie.clean.hours.retained",
        }[self.name]
        return Call(
            text=f"{self.name} {kept}",
            act=lambda table: table.clean(options={key: str(kept)}),
            effect=_is_cleaned,
            # A clean that died has removed files that the metadata table still lists.
            is_repeated=True,
        )


def _is_cleaned(past: Past) -> None:
    past.is_cleaned = True


def _reset(table: Table, plan: PendingPlan) -> object:
    """A build of an index, or a clean, is continued, and nothing of it is taken back."""
    try:
        return table.reset_plan(plan.instant)
    except InvalidRequest as refused:
        if plan.service in SERVICES or refused.code != "not_reset":
            raise
        return None


ARCHIVING = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
SIMPLE: dict[str, tuple[int, Callable[[Table], object]]] = {
    "archive": (2, lambda table: table.archive(options=ARCHIVING)),
    "compact timeline": (
        1,
        lambda table: table.compact_timeline(
            options={"hoodie.timeline.compaction.batch.size": "2"}
        ),
    ),
    "sweep": (1, lambda table: table.sweep()),
    "settle": (1, lambda table: table.rollback_failed_writes()),
    "maintain metadata": (1, lambda table: table.maintain_metadata()),
    "end stale": (1, lambda table: table.end_stale(0, with_writes=True)),
    "reset plans": (1, lambda table: [_reset(table, plan) for plan in table.plans()]),
    "refresh indexes": (
        1,
        lambda table: [
            table.refresh_index(index.name) for index in table.indexes() if index.name != "files"
        ],
    ),
}


@dataclass(frozen=True, slots=True)
class Simple:
    """A service that has no arguments."""

    name: str
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if self.name in ("maintain metadata", "refresh indexes") and not past.has_metadata:
            return None
        _, act = SIMPLE[self.name]
        return Call(text=self.name, act=act, effect=_is_cleaned)


def simple_services() -> list[Simple]:
    return [Simple(name, weight) for name, (weight, _) in SIMPLE.items()]


TENDING: Mapping[str, Mapping[str, str]] = {
    "compaction": {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    },
    "log_compaction": {"hoodie.log.compaction.inline": "true"},
    "clustering": {
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "1",
    },
    "clean": {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"},
    "archive": {"hoodie.archive.automatic": "true", "hoodie.clean.automatic": "true", **ARCHIVING},
}


@dataclass(frozen=True, slots=True)
class Tended:
    """An upsert after which services run by themselves."""

    name: str = "upsert, tended"
    weight: int = 3

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        services = [name for name in TENDING if name not in SERVICES or _is_possible(past, name)]
        service = chance.choice(services)
        rows = upserted(past, chance, step)
        beside = {BESIDE.key: str(step % 3 == 0).lower()}

        def effect(past: Past) -> None:
            past.is_cleaned |= service in ("clean", "archive")
            for row in rows:
                past.put(row, step)

        return Call(
            text=f"upsert with {service} {briefly(rows)}",
            act=lambda table: table.upsert(given(past, rows), TENDING[service] | beside),
            effect=effect,
            is_write=True,
        )


DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Expire:
    """Partitions that nothing was written to for a day, or for very long."""

    name: str = "expire partitions"
    weight: int = 1

    def draw(self, past: Past, chance: Random, step: int) -> Call | None:
        if not past.kind.is_partitioned:
            return None
        waits = chance.random() < 0.5
        options = {"hoodie.partition.ttl.strategy.days.retain": "1" if waits else "10000"}
        return Call(
            text=f"expire {'after a day and more' if waits else 'what is very old'}",
            act=lambda table: table.expire_partitions(options=options),
            effect=lambda past: past.rows.clear() if waits else None,
            is_write=True,
            waits_ms=DAY_MS + 3_600_000 if waits else 0,
        )
