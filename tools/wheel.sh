#!/usr/bin/env bash
# Installs the wheel as README says, in an empty environment, and runs README's first query there, outside the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
"${PYTHON:-python3}" -m venv "$empty/venv"
export PATH="$empty/venv/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
unset PYTHONPATH

mkdir "$empty/clone"
cp -r .gitignore README.md LICENSE pyproject.toml squallpy grammar "$empty/clone"
line=$(grep '^pip wheel' README.md)
echo "wheel: $line" >&2
(cd "$empty/clone" && eval "$line")

# the blocks between ``` of README that follow `query.sql` and the command that runs it
block() {
    awk -v after="$1" 'index($0, after) == 1 { on = 1; next } on && /^```/ { if (inside) exit; inside = 1; next } inside' README.md
}
mkdir "$empty/examples"
cp -r examples/readme "$empty/examples/"
# shellcheck disable=SC2016
block '`query.sql`' > "$empty/query.sql"
# shellcheck disable=SC2016
block '`squall run query.sql --backend local` prints' > "$empty/expected"
cd "$empty"
squall run query.sql --backend local > answer
sort answer | diff - <(sort expected)
echo "wheel: squall, installed from $(ls clone/dist), gives README's answer" >&2
