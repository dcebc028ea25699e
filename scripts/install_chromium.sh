#!/bin/sh
# The tests of the page need a browser: have Debian's chromium, or say that those tests are skipped.
set -eu
if command -v chromium >/dev/null; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "chromium is not installed; the tests of the page are skipped." >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends chromium >/dev/null
