"""The id port: the only source of randomness in the engine."""

import random
import uuid
from typing import Protocol


class Ids(Protocol):
    """Fresh identifiers: UUID texts for file groups and owners."""

    def fresh(self) -> str: ...


class SystemIds:
    """Random UUIDs from the operating system."""

    def fresh(self) -> str:
        return str(uuid.uuid4())


class SeededIds:
    """The same UUIDs for the same seed, so that a failing run can be replayed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def fresh(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
