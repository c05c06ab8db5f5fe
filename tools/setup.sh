#!/usr/bin/env bash
# Makes .venv with squallpy (editable), to run it; with the argument `develop` adds what tests and checks need.
# Safe to run again.
set -euo pipefail
cd "$(dirname "$0")/.."

say() {
    echo "setup: $*" >&2
}

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
# NB: what nobody imports is not compiled to bytecode, which takes as long as to unpack it; what is imported is kept
unset PYTHONDONTWRITEBYTECODE
install() {
    .venv/bin/pip install --quiet --no-compile "$@"
}

if [ "${1:-run}" = run ]; then
    say "installing packages"
    install --upgrade pip  # NB: the one that Debian 12 brings knows no --group
    install --editable . --group demo
    tools/java.sh
    say "archiving the classes of Spark, so that it starts in half the time"
    .venv/bin/python -m squallpy.runtime.spark.make_class_data_archive
    say "compiling the kernels that most queries call; others are when a query calls them"
    .venv/bin/python -m squallpy.runtime.kernels common
    touch .venv/installed
else
    # NB: tests of connectors need these servers; without the right to install them they are skipped
    if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
        missing=
        ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || missing=postgresql
        command -v mvn > /dev/null || missing="$missing maven"
        command -v openssl > /dev/null || missing="$missing openssl"  # certificates of test servers
        if [ -n "$missing" ]; then
            say "installing$(printf ' %s' $missing)"
            apt-get update -qq
            # shellcheck disable=SC2086
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > /dev/null
        fi
    fi
    say "installing packages for development"
    install --group dev
    say "compiling all kernels"
    .venv/bin/python -m squallpy.runtime.kernels
    touch .venv/developed
fi
