#!/bin/sh
# The tests of the store of records start a PostgreSQL of their own: have its programs, or say that those tests are skipped.
set -eu
if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "PostgreSQL is not installed; the tests that need it are skipped." >&2
    exit 0
fi
mkdir -p /etc/postgresql-common
# Only the programs: no server that starts by itself.
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends postgresql >/dev/null
