#!/usr/bin/env bash
# Finds Java >= 17 in JAVA_HOME or on the PATH, else installs it where apt-get and root make that possible.
set -euo pipefail

version() { "$1" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1; }

fits() { command -v "$1" > /dev/null && [ "$(version "$1")" -ge 17 ] 2> /dev/null; }

if [ -n "${JAVA_HOME:-}" ]; then
    fits "$JAVA_HOME/bin/java" && exit 0
    echo "setup: JAVA_HOME=$JAVA_HOME holds no Java >= 17; unset it or point it at one" >&2
    exit 1
fi
fits java && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "setup: installing Java 17" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless > /dev/null
    fits java && exit 0
fi
echo "setup: Spark needs Java >= 17: install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2
exit 1
