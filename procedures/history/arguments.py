"""Arguments that several procedures about history share."""

from typing import Annotated

ShowArchived = Annotated[bool, "Also those that have left the active timeline."]
OfInstant = Annotated[str, "The instant that it is about, active or archived."]
StartTime = Annotated[str, "Only instants requested then or later: an instant, or a date."]
EndTime = Annotated[str, "Only instants requested then or earlier: an instant, or a date."]
