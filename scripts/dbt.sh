#!/usr/bin/env bash
# Test the dbt project of sql_examples:  dbt.sh
# dbt wants other versions of what the development environment has, so it has an environment of its own in .compat/.
set -euo pipefail

cd "$(dirname "$0")/.."
scripts/side_venv.sh dbt requirements/dbt.lock
echo "==> dbt"
home=$(.compat/dbt/bin/python -m lakewarden.java_home)
JAVA_HOME="$home" LAKEWARDEN_DBT_PYTHON="$PWD/.compat/dbt/bin/python" .venv/bin/pytest -n0 tests/dbt
