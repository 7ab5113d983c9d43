"""Build the jars in sql_ext/jvm from the Java sources beside them:  build_jar.py [--to FOLDER]

With --digest or --compiler only that is printed.

lakewarden.jar is for Spark 4, whose classes come from the PySpark of the interpreter that runs
this. lakewarden-spark-3.5.jar is for Spark 3.5 and Scala 2.12, from an environment in .compat/;
without one it is left as it is. The same sources and compiler give the same bytes. The manifest
names the compiler and the digest of the sources, so that a stale jar is known without a compiler.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
JVM = CHECKOUT / "sql_ext" / "jvm"
SOURCES = JVM / "io"
JAR = "lakewarden.jar"
# Interfaces as they were in older Sparks, and the class that is compiled against each.
OLD_SHAPES = {
    JVM / "shapes" / "spark-4.0": "FormerParser.java",
    JVM / "shapes" / "spark-4.1": "PlainParser.java",
}
THEIR_PARENTS = ("RewritingParser.java", "ParameterParser.java")
# For Spark 3.5. A class in its folder takes the place of the one by that name, ours or another's.
FORMER_JAR = "lakewarden-spark-3.5.jar"
FORMER = JVM / "spark-3.5"
FORMER_SPARK = ".compat/3.5/lib/python*/site-packages/pyspark/jars"
LEFT_OUT = frozenset(
    {
        "ConnectRequests",
        "ConstantArguments",
        "DeclaredProcedure",
        "ParameterParser",
        "PlainParser",
        "ProcedureCommands",
        "ScriptResults",
        "SplittingParser",
    }
)
# Where Spark 3.5 and Scala 2.12 have what the sources name elsewhere.
FORMER_PLACES = (
    (r"org\.apache\.spark\.sql\.classic\.", "org.apache.spark.sql."),
    (r"scala\.collection\.immutable\.(Seq|IndexedSeq)\b", r"scala.collection.\1"),
)
# The oldest moment that a zip file can name.
MOMENT = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=JVM)
    parser.add_argument("--digest", action="store_true")
    parser.add_argument("--compiler", action="store_true")
    asked = parser.parse_args()
    if asked.digest:
        print(sources_digest())
    elif asked.compiler:
        print(compiler_release())
    else:
        build(asked.to)


def build(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_all(folder / "classes", folder / "shapes")
        pack(folder / "classes", target / JAR)
        former_spark = next(CHECKOUT.glob(FORMER_SPARK), None)
        if former_spark is None:
            print(f"{FORMER_JAR} stays as it is: no PySpark in {FORMER_SPARK}")
            return
        write_former_sources(folder / "former")
        former = sorted((folder / "former").rglob("*.java"))
        javac(folder / "former-classes", former, [], former_spark)
        shutil.copytree(FORMER / "META-INF", folder / "former-classes" / "META-INF")
        pack(folder / "former-classes", target / FORMER_JAR)


def write_former_sources(target: Path) -> None:
    """The sources as Spark 3.5 and Scala 2.12 know them."""
    shutil.copytree(FORMER, target)
    own = {source.stem for source in target.rglob("*.java")}
    for source in SOURCES.rglob("*.java"):
        if source.stem not in own | LEFT_OUT:
            copy = target / source.relative_to(JVM)
            copy.write_text(former_text(source.read_text(encoding="utf-8"), own), encoding="utf-8")


def former_text(text: str, own: Iterable[str]) -> str:
    for pattern, place in FORMER_PLACES:
        text = re.sub(pattern, place, text)
    return re.sub(rf"^import [\w.]+\.({'|'.join(sorted(own))});\n", "", text, flags=re.MULTILINE)


def compile_all(classes: Path, shapes: Path) -> None:
    """Whatever names the class of the old shapes comes after it, whatever it extends before."""
    sources = sorted(SOURCES.rglob("*.java"))
    old = [source for source in sources if source.name in OLD_SHAPES.values()]
    javac(classes, [source for source in sources if source.name in THEIR_PARENTS], [])
    for number, (shape, name) in enumerate(OLD_SHAPES.items()):
        shaped = shapes.with_name(f"{shapes.name}-{number}")
        javac(shaped, sorted(shape.rglob("*.java")), [])
        javac(classes, [source for source in old if source.name == name], [shaped, classes])
    javac(classes, [source for source in sources if source not in old], [classes])


def javac(
    target: Path, sources: Iterable[Path], before: Iterable[Path], spark: Path | None = None
) -> None:
    """Compile against a Spark's jars; without one the sources of other classes are at hand, too."""
    target.mkdir(exist_ok=True)
    path = ":".join([*map(str, before), f"{spark or spark_jars()}/*"])
    # A compiler of few classes does not pay for optimised code of its own.
    soon = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
    flags = [*soon, "-nowarn", "-Xlint:none", "-XDignore.symbol.file", "--release", "17"]
    places = [*([] if spark else ["-sourcepath", str(JVM)]), "-cp", path, "-d", str(target)]
    subprocess.run(["javac", *flags, *places, *map(str, sources)], check=True)


def spark_jars() -> Path:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise SystemExit("build_jar.py: PySpark is needed; run it by `make jar`")
    return Path(found.origin).parent / "jars"


def pack(classes: Path, target: Path) -> None:
    """Entries are sorted and have one date, so that only their contents tell jars apart."""
    with zipfile.ZipFile(target, "w") as jar:
        add(jar, "META-INF/MANIFEST.MF", manifest().encode())
        for file in sorted(classes.rglob("*")):
            if file.is_dir():
                continue
            add(jar, file.relative_to(classes).as_posix(), file.read_bytes())
    print(f"{target}: {target.stat().st_size} bytes")


def add(jar: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, MOMENT)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    jar.writestr(entry, content)


def manifest() -> str:
    lines = [
        "Manifest-Version: 1.0",
        f"Created-By: javac {compiler_release()}",
        f"Sources-Digest: {sources_digest()}",
    ]
    return "".join(f"{line}\r\n" for line in [*lines, ""])


def compiler_release() -> str:
    reported = subprocess.run(["javac", "-version"], check=True, capture_output=True, text=True)
    version = re.search(r"\d+", reported.stdout + reported.stderr)
    assert version is not None
    return version[0]


def sources_digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(JVM.rglob("*.java")):
        digest.update(source.relative_to(JVM).as_posix().encode())
        digest.update(source.read_bytes())
    # A line of a manifest has 72 bytes at most.
    return digest.hexdigest()[:40]


if __name__ == "__main__":
    main()
