#!/usr/bin/env bash
# Renew the locks: resolve extras of pyproject.toml from nothing and write down the versions.
# PIP_CONSTRAINT may name a file of versions to keep.
set -euo pipefail

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# lock EXTRA WHAT: the versions of an extra, in requirements/EXTRA.lock
lock() {
    "${PYTHON:-python3}" -m venv "$folder/$1"
    local pip=("$folder/$1/bin/python" -m pip --disable-pip-version-check)
    "${pip[@]}" install --quiet --upgrade pip
    "${pip[@]}" install --quiet --editable ".[$1]"
    {
        echo "# Exact versions of $2. Written by \`make lock\`; not edited by hand."
        "${pip[@]}" freeze --all --exclude-editable --exclude pip
    } > "requirements/$1.lock"
    echo "requirements/$1.lock: $(grep -c == "requirements/$1.lock") packages"
}

lock dev "the development environment"
lock dbt "the environment of the dbt example"
