#!/usr/bin/env bash
# Refuse commits whose subject is longer than 72 characters:  subjects.sh [RANGE]
#
# Without a range, those which the branch's upstream does not have; the newest one without upstream.
set -euo pipefail

if [ $# -gt 0 ]; then
    range=("$1")
elif git rev-parse --quiet --verify '@{upstream}' >/dev/null; then
    range=('@{upstream}..HEAD')
else
    range=(-1 HEAD)
fi

long=$(git log --no-merges --format=%s "${range[@]}" | awk 'length($0) > 72')
if [ -n "$long" ]; then
    printf 'These subjects have more than 72 characters:\n%s\n' "$long" >&2
    exit 1
fi
