#!/bin/sh
# Builds the wheel of the committed state, reproducibly: make-wheel.sh PYTHON FOLDER
# Equal commits, with the setuptools of constraints.txt, make equal bytes: the sources are a copy of
# what is committed, so no leftover of the folder gets in; modes do not follow the umask; and the
# times in the archive are that of the commit.
set -eu
cd "$(dirname "$0")/.."
python=$1
mkdir -p "$2"
target=$(cd "$2" && pwd)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git -c tar.umask=0022 archive HEAD | tar -xf - -C "$copy"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$target" "$copy"
(cd "$target" && sha256sum parley-*.whl)
