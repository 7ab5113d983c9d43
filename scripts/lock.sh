#!/usr/bin/env bash
# Renew requirements/dev.lock: resolve pyproject.toml's `dev` extra from nothing and write down the versions.
# PIP_CONSTRAINT may name a file of versions to keep.
set -euo pipefail

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${PYTHON:-python3}" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install --quiet --upgrade pip
"${pip[@]}" install --quiet --editable '.[dev]'
{
    echo "# Exact versions of the development environment. Written by \`make lock\`; not edited by hand."
    "${pip[@]}" freeze --all --exclude-editable --exclude pip
} > requirements/dev.lock
echo "requirements/dev.lock: $(grep -c == requirements/dev.lock) packages"
