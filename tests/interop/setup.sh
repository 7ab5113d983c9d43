#!/usr/bin/env bash
# Prepare what the interop tests ask, in one folder:  setup.sh FOLDER
#   FOLDER/venv   Python with PySpark 3.5 and the Rust reader of Hudi, at the versions of interop.lock
#   FOLDER/jars   the Apache Hudi bundle for that Spark
# Finished steps are skipped. Fails, and says why, where something is out of reach.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

group=org.apache.hudi
artifact=hudi-spark3.5-bundle_2.12
version=1.2.0
jar=$folder/jars/$artifact-$version.jar
path_in_repository=${group//.//}/$artifact/$version/$artifact-$version.jar

fail() {
    echo "interop/setup.sh: $*" >&2
    exit 1
}

need_maven() {
    command -v mvn >/dev/null && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing the Debian package maven"
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends maven; } >"$folder/maven.log" 2>&1 ||
            fail "apt-get could not install maven; see $folder/maven.log"
        return
    fi
    fail "no mvn on the PATH: install Maven, or set MAVEN_REPO_URL to the base address of a Maven repository"
}

fetch_with_maven() {
    need_maven
    mvn --quiet --batch-mode dependency:copy \
        -Dartifact="$group:$artifact:$version:jar" -DoutputDirectory="$folder/fetched" \
        >"$folder/maven.log" 2>&1 ||
        fail "Maven cannot fetch $group:$artifact:$version; is a Maven repository within reach? See $folder/maven.log"
    mv "$folder/fetched/$artifact-$version.jar" "$jar.part"
    rmdir "$folder/fetched"
}

fetch_bundle() {
    echo "fetching $group:$artifact:$version"
    mkdir -p "$folder/jars"
    if [ -n "${MAVEN_REPO_URL:-}" ]; then
        curl --fail --silent --show-error --location -o "$jar.part" "$MAVEN_REPO_URL/$path_in_repository" ||
            fail "cannot fetch $path_in_repository from MAVEN_REPO_URL"
    else
        fetch_with_maven
    fi
    mv "$jar.part" "$jar"
}

if ! cmp -s "$here/interop.lock" "$folder/installed.lock"; then
    "$checkout/scripts/venv.sh" "$folder/venv" "$here/interop.lock"
    cp "$here/interop.lock" "$folder/installed.lock"
fi
[ -s "$jar" ] || fetch_bundle
