#!/usr/bin/env bash
# Run tests with another Spark than the locked one:  compat.sh PYSPARK_VERSION [TESTS...]
# Its virtual environment is the locked one but for PySpark and what that is made for, and stays in
# .compat/. Without tests it is only made. Tests of what a Spark lacks are in tests/compat/.
set -euo pipefail

cd "$(dirname "$0")/.."
version=$1
shift
name=${version%.*}
folder=.compat/$name
left_out=()
if grep -qx "pyspark==$version" requirements/dev.lock; then
    folder=.venv
else
    changes=(-e "s/^pyspark==.*/pyspark==$version/")
    if [ "$name" = 3.5 ]; then
        # As PySpark's own extras have it: numpy below 2, and a pyarrow that still takes that.
        changes+=(-e 's/^numpy==.*/numpy==1.26.4/' -e 's/^pyarrow==.*/pyarrow==25.0.1/'
            -e 's/^py4j==.*/py4j==0.10.9.7/')
    fi
    mkdir -p .compat
    sed "${changes[@]}" requirements/dev.lock > "$folder.wanted"
    scripts/side_venv.sh "$name" "$folder.wanted"
fi
if [ $# = 0 ]; then
    exit
fi
while read -r test; do
    left_out+=("--deselect=$test")
done < <(grep -hv '^#' "tests/compat/spark-$name.txt" 2>/dev/null)
echo "==> PySpark $version"
home=$("$folder/bin/python" -m lakewarden.java_home)
JAVA_HOME="$home" PYSPARK_PYTHON="$PWD/$folder/bin/python" \
    "$folder/bin/pytest" -n0 "${left_out[@]}" "$@"
