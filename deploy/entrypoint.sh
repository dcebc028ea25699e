#!/bin/sh
# NAME_FILE is a file that holds NAME: how Docker and Compose hand out secrets, without them showing in `docker inspect`.
set -eu

from_file() {
    eval "file=\${$1_FILE:-}"
    if [ -n "$file" ]; then
        value=$(cat "$file")
        export "$1=$value"
    fi
}

from_file FASTERCE_RECORDS
from_file FASTERCE_PSEUDONYM_KEY
exec fasterce "$@"
