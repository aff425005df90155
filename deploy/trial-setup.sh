#!/bin/sh
# Keys, settings, made-up rows and a study for the trial of compose.yaml: trial-setup.sh FOLDER
# What several machines would send one another is copied between folders here.
set -eu
cd "$1"
if [ -e hub ]; then
  echo "$1/hub is there already; remove $1/hub, north, east and south to start anew" >&2
  exit 1
fi
umask 077

parley keys init curator hub --host curator --host localhost --folder hub/keys
authority=$(parley keys show --folder hub/keys | awk '$1 == "authority" {print $2}')
signer=$(parley keys show --folder hub/keys | awk '$1 == "identity" {print $2}')
for owner in north east south; do
  parley keys init party $owner --folder $owner/keys
  request=$(parley keys request --folder $owner/keys | awk '{print $2}')
  parley keys approve $owner/keys/party.csr --folder hub/keys --fingerprint "$request"
  parley keys accept hub/keys/issued/$owner-*.pem --authority hub/keys/authority.pem \
    --fingerprint "$authority" --folder $owner/keys
  cat > $owner/party.toml <<'TOML'
folder = "state"
keys = "keys"
policy = "policy.toml"
curator = "curator:7443"
[source]
kind = "csv"
path = "rows.csv"
TOML
  cat > $owner/policy.toml <<TOML
[budget]
epsilon_per_study = "1"
epsilon_in_total = "1"
[study]
signers = ["$signer"]
[approval]
automatic = true      # a trial asks no person; a real owner reviews and approves
TOML
done
cat > hub/curator.toml <<'TOML'
folder = "state"
keys = "keys"
releases = "releases"
TOML

python - <<'PYTHON'
from pathlib import Path

from parley.simulation.population import demo_schema_toml, make_population

Path("hub/schema.toml").write_text(demo_schema_toml())
for seed, owner in enumerate(("north", "east", "south")):
    make_population(10_000, seed=seed).to_csv(f"{owner}/rows.csv", index=False)
PYTHON
parley curator study new --name trial --schema hub/schema.toml --epsilon 1 --config hub/curator.toml \
  --party north:10000:north/keys/identity.pub --party east:10000:east/keys/identity.pub \
  --party south:10000:south/keys/identity.pub --out hub/study.toml
parley curator study add hub/study.toml --config hub/curator.toml
echo "ready: start the services; the release will be in $1/hub/releases"
