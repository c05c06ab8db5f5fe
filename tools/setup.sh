#!/usr/bin/env bash
# Makes .venv with squallpy (editable) and its development tools. Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

python=
for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "setup: Python >= 3.11 is needed, and no python3 on the PATH is one" >&2
    exit 1
fi

if ! [ -x .venv/bin/pip ]; then
    if ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
        # Debian ships the module apart from its Python
        package=$("$python" -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}-venv")')
        if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
            echo "setup: $python has no venv module: install it (Debian: apt-get install $package)" >&2
            exit 1
        fi
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" > /dev/null
    fi
    "$python" -m venv --clear .venv
fi
.venv/bin/pip install --quiet --upgrade pip  # NB: the one that Debian 12 brings knows no --group
.venv/bin/pip install --quiet --editable . --group dev
tools/java.sh
.venv/bin/python -m squallpy.runtime.spark.archive  # sessions then start in half the time
.venv/bin/python -m squallpy.runtime.kernels  # compiled now, not when the first query waits for them
touch .venv/installed
