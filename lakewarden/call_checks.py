"""Checks of what callers pass in: what makes no sense is refused before anything is done."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.services.metadata_table.service import MetadataService
from lakewarden.engine.transaction.state.context import Context, load_for_writing


def at_least_one(name: str, number: object) -> int | None:
    """A limit: a whole number above zero, or none."""
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        why = "It limits the work of the call."
        raise _refused(name, number, why, "Give a whole number above zero, or leave it out.")
    return number


def seconds(name: str, number: object) -> float | None:
    """A time span: a number that is not negative, or none."""
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
        why = "It is a number of seconds."
        raise _refused(name, number, why, "Give a number that is not negative, or leave it out.")
    return number


def yes_or_no(name: str, value: object) -> bool:
    """A flag: another value would be taken for yes, also the word no."""
    if not isinstance(value, bool):
        raise _refused(name, value, "It is either true or false.", "Give True or False.")
    return value


def instant_text(instant: object) -> str:
    """An instant as the timeline spells it; a number of its digits is one, too."""
    text = str(instant) if isinstance(instant, int) and not isinstance(instant, bool) else instant
    if not isinstance(text, str) or not text:
        why = "An instant is a text of digits, as the timeline shows it."
        raise _refused("instant", instant, why, "Give one such as '20261118101500123'.")
    return text


def partition_paths(context: Context, paths: Sequence[str] | None) -> tuple[str, ...] | None:
    """Paths of partitions that are there; None means all."""
    if paths is None:
        return None
    if isinstance(paths, str):
        why = "It is a list of the paths of partitions."
        raise _refused("partitions", paths, why, f"Give [{paths!r}].")
    snapshot = load_for_writing(context)
    there = snapshot.source(use_metadata=True).partitions()
    unknown = [path for path in paths if path not in there]
    if unknown:
        example = f" Their paths look like {there[-1]!r}." if there else ""
        raise InvalidRequest(
            "unknown_partition",
            what=f"The table has no partition {unknown[0]!r}.",
            why=f"It has {len(there)} partitions.{example}",
            now="Use the paths of partitions, or leave them out.",
            partition=unknown[0],
        )
    return tuple(paths)


def metadata_services(names: Sequence[str]) -> tuple[MetadataService, ...]:
    """Services of the metadata table, by their names."""
    known = tuple(MetadataService)
    if isinstance(names, str) or any(name not in known for name in names):
        why = f"It is a list of some of {', '.join(known)}."
        raise _refused("services", names, why, "Give a list of such names, or leave it out.")
    return tuple(map(MetadataService, names))


def parameters_of(call: Callable[..., object]) -> frozenset[str]:
    """The parameters that a call has by name, besides the keywords that stand for options."""
    parameters = signature(call).parameters.values()
    return frozenset(one.name for one in parameters if one.kind is not one.VAR_KEYWORD)


def refuse_limit(call: str, keywords: Mapping[str, object], instead: str) -> None:
    """Refuse a limit where no plans are counted: it would be taken for the end of some key."""
    if "limit" in keywords:
        raise InvalidRequest(
            "unknown_option",
            what=f"{call} takes no limit.",
            why="A limit is the number of pending plans that run() executes.",
            now=f"Use {instead} instead.",
            option="limit",
        )


def _refused(name: str, value: object, why: str, now: str) -> InvalidRequest:
    return InvalidRequest(
        "bad_argument",
        what=f"{name}={value!r} is not valid.",
        why=why,
        now=now,
        argument=name,
    )
