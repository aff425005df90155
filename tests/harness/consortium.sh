# What pages of the documentation take for granted: a curator and three owners, and a finished study.
# Sourced by their hidden blocks: PORT=7443; . "$PYTHONPATH/tests/harness/consortium.sh"

consortium() {  # keys, certificates and settings of hub and the named owners; POLICY is added
  cp example-schema.toml schema.toml
  parley keys init curator hub --host 127.0.0.1 --folder hub/keys
  printf '%s\n' 'folder = "state"' 'keys = "keys"' 'releases = "out"' "listen = \"127.0.0.1:$PORT\"" \
    'dashboard_listen = "127.0.0.1:0"' > hub/curator.toml
  authority=$(parley keys show --folder hub/keys | awk '$1 == "authority" {print $2}')
  for owner in "$@"; do
    told=$(parley keys init party $owner --folder $owner/keys | awk '{print $2}')
    parley keys approve $owner/keys/party.csr --folder hub/keys --fingerprint $told
    parley keys accept hub/keys/issued/$owner-*.pem --authority hub/keys/authority.pem \
      --fingerprint $authority --folder $owner/keys
    printf '[budget]\nepsilon_per_study = "1"\nepsilon_in_total = "4"\n%s\n' "${POLICY:-}" > $owner/policy.toml
    printf '%s\n' 'folder = "state"' 'keys = "keys"' 'policy = "policy.toml"' \
      "curator = \"127.0.0.1:$PORT\"" 'metrics = "127.0.0.1:0"' '[source]' 'kind = "csv"' \
      'path = "rows.csv"' > $owner/party.toml
  done
}

offer() {  # a study of three owners
  parley curator study new --name health --schema schema.toml --epsilon 1 --aggregation masked \
    --out study.toml --config hub/curator.toml --party north:400:north/keys/identity.pub \
    --party east:300:east/keys/identity.pub --party south:500:south/keys/identity.pub
  parley curator study add study.toml --config hub/curator.toml
}

finish() {  # run it until every node has its release
  parley curator serve --config hub/curator.toml 2> hub/log.jsonl &
  until grep -q listening hub/log.jsonl; do sleep 1; done
  for owner in north east south; do
    parley party approve study.toml --config $owner/party.toml --yes
    parley party join --once --config $owner/party.toml 2> $owner/log.jsonl &
  done
  until parley curator study status health --config hub/curator.toml | grep ^release; do sleep 1; done
  for owner in north east south; do
    until parley party status --offline --config $owner/party.toml | grep "here finished"; do sleep 1; done
  done
}
