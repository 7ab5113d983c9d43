"""Permissions of a server: what its owner allows, and no session changes."""

from collections.abc import Mapping

from pyspark import SparkContext

from lakewarden.engine.kernel.errors import InvalidRequest
from lakewarden.engine.kernel.settings import flag
from lakewarden.engine.spark.workers.older_sparks import OLDEST_TO_SERVE, check_spark
from lakewarden.procedures.declaring.permissions import Permissions

ALLOWED_ROOTS, READ_ONLY = "lakewarden.allowed.roots", "lakewarden.read.only"
_FOLDER_OF_LOCK = "lock.filesystem.path"


def permissions_in(settings: Mapping[str, str]) -> Permissions:
    """What the settings of a Spark context allow. They are the owner's: SET does not reach them."""
    roots = [root.strip() for root in settings.get(ALLOWED_ROOTS, "").split(",")]
    return Permissions(
        allowed_roots=tuple(filter(None, roots)) if ALLOWED_ROOTS in settings else None,
        is_read_only=flag(settings.get(READ_ONLY, "false")),
    )


def permissions_of(context: SparkContext) -> Permissions:
    """What a running context allows."""
    return permissions_in(_set_in(context))


def check_settings(permissions: Permissions, settings: Mapping[str, str]) -> None:
    """A setting that names a folder must not lead out of the allowed roots either."""
    for key, value in settings.items():
        if key.lower().endswith(_FOLDER_OF_LOCK):
            permissions.check_path(value)


def fix_permissions(context: SparkContext, settings: Mapping[str, str]) -> None:
    """Give a running context its owner's permissions, which hold until it is stopped.

    Permissions in the context's own configuration are refused by an older Spark, too: what its
    planner makes of statements has not been judged.
    """
    if {ALLOWED_ROOTS, READ_ONLY} & (settings.keys() | _set_in(context).keys()):
        check_spark(context.version, OLDEST_TO_SERVE)
    conf = context._jsc.sc().conf()
    for key in (ALLOWED_ROOTS, READ_ONLY):
        if key not in settings:
            continue
        if conf.contains(key) and conf.get(key) != settings[key]:
            raise _fixed(key, conf.get(key))
        conf.set(key, settings[key])


def _set_in(context: SparkContext) -> dict[str, str]:
    conf = context._jsc.sc().conf()
    spellings = {key: (key, f"spark.{key}") for key in (ALLOWED_ROOTS, READ_ONLY)}
    return {
        key: conf.get(name)
        for key, names in spellings.items()
        for name in names
        if conf.contains(name)
    }


def _fixed(key: str, value: str) -> InvalidRequest:
    return InvalidRequest(
        "permission_fixed",
        what=f"{key} is {value!r} already.",
        why="A server sets its permissions once, so that no client can widen them.",
        now="Stop the Spark context, then start one with other permissions.",
        key=key,
    )
