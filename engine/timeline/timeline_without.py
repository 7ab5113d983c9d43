"""The completions of a timeline without some instants: as it was before them, or will be."""

from dataclasses import dataclass

from lakewarden.engine.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Without:
    """What the timeline says of completions once some instants are no more."""

    timeline: Timeline
    gone: frozenset[str]

    def completion_time(self, requested: str) -> str | None:
        return None if requested in self.gone else self.timeline.completion_time(requested)

    def is_completed(self, requested: str) -> bool:
        return requested not in self.gone and self.timeline.is_completed(requested)
