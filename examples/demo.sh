#!/usr/bin/env bash
# TPC-H Q3 over three streams on Spark: the answer while the rows come, then the final one and tuples per second.
#   examples/demo.sh [SCALE]      the scale of TPC-H, 0.1 if not given: 866,000 rows
set -euo pipefail
cd "$(dirname "$0")"

scale=${1:-0.1}
data=tpch/data
if [ "$(cat $data/scale 2> /dev/null)" != "$scale" ]; then
    if ! command -v tpchgen-cli > /dev/null; then
        echo "demo: tpchgen-cli makes the data and is not on the PATH: pip install tpchgen-cli" >&2
        exit 3
    fi
    echo "demo: making TPC-H data at scale $scale in examples/$data" >&2
    tpchgen-cli parquet -s "$scale" -T customer,orders,lineitem -o $data -q --overwrite
    echo "$scale" > $data/scale
fi

if [ -t 1 ]; then
    exec squall run tpch/q3.sql --mode live --batch-rows 25000
fi
exec python demo.py tpch/q3.sql
