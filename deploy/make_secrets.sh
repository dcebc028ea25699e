#!/bin/sh
# deploy/secrets/ for compose.yaml: made once, never overwritten. Files a container's user can read, in a folder nobody
# else on this machine can enter.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

drawn() {
    python3 -c "import secrets; print(secrets.token_hex(32), end='')"
}

[ -e secrets/postgres_password ] || drawn > secrets/postgres_password
[ -e secrets/pseudonym_key ] || drawn > secrets/pseudonym_key
[ -e secrets/records_url ] || printf 'postgresql://fasterce:%s@records:5432/fasterce' "$(cat secrets/postgres_password)" > secrets/records_url
[ -e secrets/keys.json ] || "${FASTERCE:-fasterce}" keys new --name first --scope explain --scope records secrets/keys.json
chmod 0644 secrets/*
