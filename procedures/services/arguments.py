"""Arguments that the procedures which carry out plans share."""

from typing import Annotated

Op = Annotated[
    str | None,
    "schedule, execute, or scheduleAndExecute, which is also meant without it; with instants,"
    " execute.",
]
Instants = Annotated[str | None, "Pending plans to execute, separated by commas."]
PlanLimit = Annotated[int | None, "No more plans are carried out than these, the oldest first."]
Cancellable = Annotated[
    bool | None, "Whether a new plan may be cancelled; as it is set where this is left out."
]
