#!/usr/bin/env bash
# Run tests with an older Spark than the locked one:  compat.sh PYSPARK_VERSION TESTS...
# Its virtual environment is the locked one but for PySpark, and stays in .compat/.
set -euo pipefail

cd "$(dirname "$0")/.."
version=$1
shift
name=${version%.*}
folder=.compat/$name
mkdir -p .compat
sed "s/^pyspark==.*/pyspark==$version/" requirements/dev.lock > "$folder.wanted"
scripts/side_venv.sh "$name" "$folder.wanted"
echo "==> PySpark $version"
home=$("$folder/bin/python" -m lakewarden.java_home)
JAVA_HOME="$home" PYSPARK_PYTHON="$PWD/$folder/bin/python" "$folder/bin/pytest" -n0 "$@"
