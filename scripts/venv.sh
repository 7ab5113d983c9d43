#!/usr/bin/env bash
# Make a virtual environment with exactly the locked packages:  venv.sh FOLDER LOCK
# PYTHON chooses the interpreter; else the first of the usual names that is new enough.
set -euo pipefail

oldest="3, 11"
folder=$1
lock=$2

fail() {
    echo "venv.sh: $*" >&2
    exit 1
}

new_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < ($oldest))" 2>/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    fail "no Python of version ${oldest/, /.} or newer found; set PYTHON=/path/to/python"
}

if ! { [ -x "$folder/bin/python" ] && new_enough "$folder/bin/python"; }; then
    python=$(find_python)
    echo "making $folder with $("$python" --version)"
    "$python" -m venv --clear "$folder" ||
        fail "$python cannot make virtual environments; on Debian and Ubuntu install python3-venv"
fi

echo "installing $(grep -c '==' "$lock") packages of $lock into $folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r "$lock" ||
    fail "pip could not install the packages of $lock; is a package index within reach?"
