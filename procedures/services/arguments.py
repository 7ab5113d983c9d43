"""Arguments that the procedures which run plans share."""

from typing import Annotated

Op = Annotated[
    str | None,
    "schedule, execute, or scheduleAndExecute (the default); with instants, execute.",
]
Instants = Annotated[str | None, "Pending plans to execute, separated by commas."]
PlanLimit = Annotated[int | None, "The most plans to run, the oldest first."]
Cancellable = Annotated[
    bool | None, "Whether a new plan can be cancelled; without it the table's setting decides."
]
