"""What reading damaged files takes: a program of its own, so that its memory can be measured.

It reads the files of a folder, whose names begin with their kind, and prints one line of JSON for
each: how it ended, in which time, and the most memory that the program had meanwhile.
"""

import json
import sys
import time
from pathlib import Path

from lakewarden.engine.kernel.errors import LakewardenError
from tests.hostile.reading import READERS

A_VALUE = "a value"
REFUSED = "refused"


def measured(kind: str, content: bytes) -> dict[str, object]:
    # The system counts the most memory anew from here on.
    Path("/proc/self/clear_refs").write_text("5")
    began = time.perf_counter()
    end = A_VALUE
    try:
        READERS[kind](content)
    except LakewardenError as error:
        end = f"{REFUSED}: {error.code}"
    except BaseException as error:
        end = f"{type(error).__name__}: {error!s:.100}"
    return {"end": end, "seconds": time.perf_counter() - began, "peak_mb": _peak_mb()}


def _peak_mb() -> int:
    status = Path("/proc/self/status").read_text()
    line = next(one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).iterdir()):
        found = measured(file.name.partition(" ")[0], file.read_bytes())
        print(json.dumps({"name": file.name, **found}))
