"""The services whose plans lie on the timeline until they are executed."""

from enum import StrEnum

from lakewarden.engine.kernel.settings import Setting, Settings, flag
from lakewarden.engine.timeline.instants.instant import Action


class Service(StrEnum):
    """A table service that works by plans."""

    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    CLUSTERING = "clustering"

    @property
    def action(self) -> Action:
        """The action under which its plans are on the timeline."""
        return _ACTIONS[self]

    @property
    def words(self) -> str:
        """What a sentence calls it."""
        return self.replace("_", " ")

    @classmethod
    def of(cls, action: Action) -> "Service | None":
        """The service that begins as an action, if it is one."""
        return next((service for service, own in _ACTIONS.items() if own is action), None)


_ACTIONS = {
    Service.COMPACTION: Action.COMPACTION,
    Service.LOG_COMPACTION: Action.LOG_COMPACTION,
    Service.CLUSTERING: Action.CLUSTERING,
}
TABLE_SERVICES = frozenset(_ACTIONS.values())


def _cancellable(service: Service, *, default: bool) -> Setting[bool]:
    return Setting(
        f"lakewarden.{service}.cancellable",
        default,
        flag,
        f"Whether new {service.words} plans give way to writes and can be cancelled",
    )


CANCELLABLE: dict[Service, Setting[bool]] = {
    # A compaction leaves the logs of others valid, and readers wait for it.
    Service.COMPACTION: _cancellable(Service.COMPACTION, default=False),
    Service.LOG_COMPACTION: _cancellable(Service.LOG_COMPACTION, default=True),
    Service.CLUSTERING: _cancellable(Service.CLUSTERING, default=True),
}


def is_cancellable(settings: Settings, service: Service, asked: bool | None) -> bool:
    """Whether a new plan may be cancelled: as asked for, else as it is set."""
    return settings[CANCELLABLE[service]] if asked is None else asked
