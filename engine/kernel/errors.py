"""Errors: one root, six kinds; the kind tells the caller what to do next.

Every error carries a stable code, its parameters as attributes, and a message in three parts:
what happened, why, and what to do now.
"""

from typing import ClassVar

REPORT = "This is a defect of Lakewarden: please report it."


class LakewardenError(Exception):
    """The base class of all errors that Lakewarden raises."""

    kind: ClassVar[str] = "error"

    def __init__(self, code: str, *, what: str, why: str, now: str, **parameters: object) -> None:
        self.code = code
        self.what = what
        self.why = why
        self.now = now
        self.parameters = dict(parameters)
        super().__init__(" ".join(part for part in (what, why, now) if part))

    def __getattr__(self, name: str) -> object:
        parameters: dict[str, object] = self.__dict__.get("parameters", {})
        if name in parameters:
            return parameters[name]
        raise AttributeError(f"{type(self).__name__} has no parameter {name!r}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.what, self.why, self.now, self.parameters)


class InvalidRequest(LakewardenError):
    """The call is wrong or asks for something unsupported: correct the call."""

    kind = "invalid_request"


class Conflict(LakewardenError):
    """Another writer or service was first: retrying may help."""

    kind = "conflict"


class Unavailable(LakewardenError):
    """The storage or the lock is out of reach: retry later."""

    kind = "unavailable"


class Unsettled(LakewardenError):
    """The outcome is unknown: check the table before you repeat the call."""

    kind = "unsettled"


class CorruptTable(LakewardenError):
    """Bytes on storage contradict the format: this table needs repair, other tables are fine."""

    kind = "corrupt_table"


class Defect(LakewardenError):
    """A fault of Lakewarden itself: please report it."""

    kind = "defect"

    def __init__(
        self, code: str, *, what: str, why: str, now: str = REPORT, **parameters: object
    ) -> None:
        super().__init__(code, what=what, why=why, now=now, **parameters)


def _rebuild(
    kind: type[LakewardenError],
    code: str,
    what: str,
    why: str,
    now: str,
    parameters: dict[str, object],
) -> LakewardenError:
    return kind(code, what=what, why=why, now=now, **parameters)


def corrupt(path: str, offset: int | None, reason: str) -> CorruptTable:
    """The error every decoder raises: which file, where in it, and what is wrong."""
    place = f" at byte {offset}" if offset is not None else ""
    return CorruptTable(
        "corrupt_file",
        what=f"{path} is not readable{place}.",
        why=reason,
        now="Restore the file, or repair the table. Nothing was changed.",
        path=path,
        offset=offset,
    )
