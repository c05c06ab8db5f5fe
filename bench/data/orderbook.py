"""Order books of any size: bids and asks that come and go around a price that wanders.

python -m bench.data.orderbook ORDERS FOLDER [EVENTS] [SEED]      bids.parquet and asks.parquet, change streams (`__op`)

A book of ORDERS orders comes first; then EVENTS (as many, if not given) more inserts and deletes, about as many of
each: orders live for an exponential time, so that their number stays. What is still there at the end is not deleted.
A delete repeats its order's row, `time` included: when it was placed.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BROKERS = 10
START = 50_000.0  # the price that the walk begins with, in a currency with cents
STEP = 0.3  # of the walk, per order: its standard deviation
DISTANCE = 800.0  # of an order's price from the walk, on average
SCHEMA = pa.schema(
    [
        ("__op", pa.string()), ("time", pa.int64()), ("id", pa.int64()), ("broker", pa.int32()),
        ("volume", pa.int64()), ("price", pa.decimal128(12, 2)),
    ]
)  # fmt: skip


def book(orders: int, events: int, seed: int = 0) -> dict[str, pa.Table]:
    """`bids` and `asks`, each with its events in their order.

    book(1000, 0)["bids"]   →   about 500 inserts
    """
    random = np.random.default_rng(seed)
    n = orders + events  # NB: half of the events are inserts; the rest falls behind the end and is cut off
    born = np.concatenate([np.zeros(orders), np.sort(random.uniform(0, events, events))])
    died = born + random.exponential(max(orders, 1), n)
    bid = random.random(n) < 0.5
    walk = START + np.cumsum(random.normal(0, STEP, n))
    price = np.maximum(walk + np.where(bid, -1, 1) * random.exponential(DISTANCE, n), 0.01)
    fields: dict[str, np.ndarray] = {
        "id": np.arange(n),
        "broker": random.integers(0, BROKERS, n).astype(np.int32),
        "volume": np.ceil(random.lognormal(4.0, 1.5, n)).astype(np.int64),
        "price": np.round(price * 100).astype(np.int64),
    }
    # stable: those who come at the start keep their order, and nobody leaves before having come
    order = np.argsort(np.concatenate([born, died]), kind="stable")[:n]
    who, leaves = order % n, order >= n
    fields["time"] = np.empty(n, np.int64)
    fields["time"][who[~leaves]] = np.flatnonzero(~leaves)
    sides = {}
    for name, side in (("bids", bid), ("asks", ~bid)):
        here = np.flatnonzero(side[who])
        sides[name] = _table({k: v[who[here]] for k, v in fields.items()}, leaves[here])
    return sides


def _table(fields: dict[str, np.ndarray], leaves: np.ndarray) -> pa.Table:
    cents = pa.array(fields.pop("price")).cast(pa.decimal128(19, 0))
    units = pa.decimal128(12, 2)
    columns = fields | {"__op": pa.array(np.where(leaves, "-", "+")), "price": _scaled(cents, units)}
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _scaled(cents: pa.Array, units: pa.DataType) -> pa.Array:
    """Whole cents as decimals with two places: the same bits."""
    return pa.Array.from_buffers(units, len(cents), cents.buffers())


def write(orders: int, folder: Path, events: int | None = None, seed: int = 0) -> Path:
    """Both sides as Parquet files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in book(orders, orders if events is None else events, seed).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    write(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:5]))
