#!/usr/bin/env bash
# Make .compat/NAME the environment of a lock, with this checkout in it, unless it is:  side_venv.sh NAME LOCK
set -euo pipefail

cd "$(dirname "$0")/.."
folder=.compat/$1
lock=$2
mkdir -p .compat
if ! cmp -s "$lock" "$folder.lock"; then
    scripts/venv.sh "$folder" "$lock"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check \
        --no-deps --no-compile --no-build-isolation --editable .
    cp "$lock" "$folder.lock"
fi
