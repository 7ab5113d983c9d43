"""Java Hudi as a service: one JVM that reads tables, runs SQL on them and checks them."""

import sys
from functools import partial
from pathlib import Path

from tests.interop.judge.log_compaction import log_compaction
from tests.interop.judge.objects import file_slices, timeline
from tests.interop.judge.reading import read, sql
from tests.interop.judge.session import open_session
from tests.interop.judge.validation import validate
from tests.interop.judge.writing import write
from tests.interop.lines import serve

COMMANDS = {
    "read": read,
    "sql": sql,
    "timeline": timeline,
    "file_slices": file_slices,
    "log_compaction": log_compaction,
    "validate": validate,
    "write": write,
}

if __name__ == "__main__":
    bundle = Path(sys.argv[1])

    def open_commands():
        session = open_session(bundle)
        return {name: partial(command, session) for name, command in COMMANDS.items()}

    serve(open_commands)
