#!/bin/sh
# Installs Parley from this folder alone, without a network: install.sh FOLDER [PYTHON]
# EXTRAS= install.sh ... leaves out what a node for files does not need: two thirds of it.
set -eu
if [ $# -lt 1 ]; then
  echo "usage: install.sh FOLDER [PYTHON]; for example install.sh /opt/parley python3.11" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
(cd "$here" && sha256sum --check --quiet SHA256SUMS) || {
  echo "$here is not as it was made (above: which files); copy the archive again" >&2
  exit 1
}
"${2:-python3}" -m venv "$1"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-index \
  --find-links "$here/wheels" -c "$here/constraints.txt" "parley[${EXTRAS-all}]"
echo "installed: $("$1/bin/parley" --version); settings to start from are in $here/samples"
