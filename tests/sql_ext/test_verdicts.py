"""Every kind of node that Spark's planner has is judged, for servers with limits."""

import struct
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

JARS = Path(pyspark.__file__).parent / "jars"
PLAN = "org/apache/spark/sql/catalyst/plans/logical/LogicalPlan"
COMMAND = "org/apache/spark/sql/catalyst/plans/logical/Command"
# How many bytes a constant of each kind takes in a class file, besides texts.
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5}
TEXT, CLASS, WIDE = 1, 7, (5, 6)
ABSTRACT = 0x0600


def classes() -> Iterator[bytes]:
    for jar in JARS.glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as opened:
            for name in opened.namelist():
                if name.startswith("org/apache/spark/sql/") and name.endswith(".class"):
                    yield opened.read(name)


def described(code: bytes) -> tuple[bool, str, list[str]]:
    """Whether a class can be made, its name, and what it is derived from."""
    texts: dict[int, str] = {}
    names: dict[int, int] = {}
    at, number = 10, 1
    while number < struct.unpack_from(">H", code, 8)[0]:
        kind, (size,) = code[at], struct.unpack_from(">H", code, at + 1)
        if kind == TEXT:
            texts[number] = code[at + 3 : at + 3 + size].decode(errors="replace")
        elif kind == CLASS:
            names[number] = size
        at += 3 + size if kind == TEXT else SIZES.get(kind, 3)
        number += 2 if kind in WIDE else 1
    flags, own, parent, count = struct.unpack_from(">4H", code, at)
    parents = [parent, *struct.unpack_from(f">{count}H", code, at + 8)]
    return not flags & ABSTRACT, texts[names[own]], [texts[names[one]] for one in parents if one]


def kinds_of_nodes() -> list[str]:
    """The names of all classes that a plan can have as a node, or that Spark calls a command."""
    can_be_made: dict[str, bool] = {}
    derived: Mapping[str, list[str]] = defaultdict(list)
    for code in classes():
        is_whole, name, parents = described(code)
        can_be_made[name] = is_whole
        for parent in parents:
            derived[parent].append(name)
    found, waiting = set(), [PLAN, COMMAND]
    while waiting:
        new = [name for name in derived[waiting.pop()] if name not in found]
        found.update(new)
        waiting += new
    return [name.replace("/", ".") for name in sorted(found) if can_be_made[name]]


def test_somebody_has_judged_every_kind_of_node(sql_session: SparkSession) -> None:
    """A new Spark's new command fails here, and is refused until it is in `Verdicts`."""
    verdicts = sql_session._jvm.io.lakewarden.spark.Verdicts
    kinds = kinds_of_nodes()
    assert len(kinds) > 300
    assert not [kind for kind in kinds if verdicts.named(kind) is None]


def test_what_nobody_has_judged_has_no_verdict(sql_session: SparkSession) -> None:
    verdicts = sql_session._jvm.io.lakewarden.spark.Verdicts
    for kind in ("org.apache.spark.sql.execution.command.NewCommand", "org.other.sql.Project"):
        assert verdicts.named(kind) is None
