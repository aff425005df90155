#!/bin/sh
# Gathers everything that a machine without a network needs: make-wheelhouse.sh PYTHON
# Run it on a machine of the same platform and Python version as the one without a network.
set -eu
cd "$(dirname "$0")/../.."
python=$1
house=dist/wheelhouse
rm -rf "$house"
mkdir -p "$house/wheels"
PIP_CONSTRAINT=constraints.txt "$python" -m pip wheel --quiet --disable-pip-version-check \
  -c constraints.txt --wheel-dir "$house/wheels" ".[all]"
rm -rf build
cp -r deploy/samples deploy/systemd "$house/"
cp deploy/offline/install.sh constraints.txt LICENSE "$house/"
(cd "$house" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum > SHA256SUMS)
platform=$("$python" -c 'import sysconfig, sys; print(f"py{sys.version_info[0]}{sys.version_info[1]}-{sysconfig.get_platform()}")')
archive=dist/parley-offline-$platform.tar.gz
tar --sort=name --owner=0 --group=0 --numeric-owner -czf "$archive" -C dist wheelhouse
echo "$archive: $(find "$house/wheels" -name '*.whl' | wc -l) wheels, $(du -sh "$archive" | cut -f1); there: tar xzf, then wheelhouse/install.sh /opt/parley"
