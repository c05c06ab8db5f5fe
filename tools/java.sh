#!/usr/bin/env bash
# Finds Java >= 17 as squallpy will (JAVA_HOME, the PATH, the usual places), else installs it where root can.
set -euo pipefail

version() { "$1" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1; }

found() {
    local java
    for java in "${JAVA_HOME:-/nowhere}/bin/java" java /usr/lib/jvm/*/bin/java /opt/java/*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java /opt/homebrew/opt/openjdk*/bin/java; do
        if command -v "$java" > /dev/null && [ "$(version "$java")" -ge 17 ] 2> /dev/null; then
            return 0
        fi
    done
    return 1
}

found && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "setup: installing Java 17" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless > /dev/null
    found && exit 0
fi
echo "setup: Spark needs Java >= 17: install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME" >&2
exit 1
