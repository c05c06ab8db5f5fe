#!/usr/bin/env bash
# TPC-H Q3 over three streams on Spark: the answer while the rows come, then the final one and tuples per second.
#   examples/demo.sh [SCALE]      the scale of TPC-H, 0.1 if not given: 866,000 rows
set -euo pipefail
cd "$(dirname "$0")"

echo "demo: TPC-H at scale ${1:-0.1} in examples/tpch/data, made unless it is there" >&2
python -m squallpy.testing.tpch "${1:-0.1}" tpch/data  # NB: all tables, so that the other queries run as well

if [ -t 1 ] && [ "${TERM:-}" != dumb ] && [ -z "${JPY_PARENT_PID:-}" ]; then  # where a table can be drawn anew
    exec squall run tpch/q3.sql --batch-rows 25000
fi
exec python demo.py tpch/q3.sql
