"""What the kernels cost: nanoseconds per tuple of pools, dictionaries and lanes, microseconds per call and per batch.

    python bench/kernels.py [millions of keys in the large pools, 2]

Figures of one process on one core, best of three; nothing here is a test.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.checkpoint.state_partition import StatePartition
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.content_hash import hash_columns, hash_strings
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.payload_products import kind_of
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout

SUM = Payload((Ring.EXACT, Ring.COUNT))
ROWS = 1_000_000


def report(what: str, action: Callable[[], object], count: int, unit: str = "ns", times: int = 3) -> None:
    """Print the time per item of the fastest run of an action over `count` items."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    print(f"{what:<58}{best / count * (1e9 if unit == 'ns' else 1e6):9.1f} {unit}")


def pools(keys: int) -> None:
    random = np.random.default_rng(0)
    words = np.ones((ROWS, 3), np.int64)
    every = random.permutation(keys).reshape(-1, 1)
    large, slowest = Pool(1, SUM), 0.0
    start = time.perf_counter()
    for at in range(0, keys, 100_000):
        before = time.perf_counter()
        large.upsert(every[at : at + 100_000], words[: len(every[at : at + 100_000])])
        slowest = max(slowest, time.perf_counter() - before)
    print(f"{'insert new keys, growth included':<58}{(time.perf_counter() - start) / keys * 1e9:9.1f} ns")
    print(f"{'  slowest batch of 100 000':<58}{slowest * 1e3:9.1f} ms")
    known = random.integers(0, keys, (ROWS, 1))
    report(f"upsert of known keys, pool of {keys:,}", lambda: large.upsert(known, words), ROWS)
    report(f"probe, pool of {keys:,}", lambda: large.probe(known), ROWS)

    small, few = Pool(1, SUM), random.integers(0, 5_000, (ROWS, 1))
    report("upsert of known keys, pool of 5,000", lambda: small.upsert(few, words), ROWS)
    scratch, batch, ones = Pool(1, SUM), random.integers(0, 10_000, (10_000, 1)), words[:10_000]

    def aggregate() -> None:
        for _ in range(100):
            scratch.upsert(batch, ones)
            scratch.rows()
            scratch.clear()

    report("pre-aggregate 10,000 rows in a scratch pool, and clear", aggregate, 1_000_000)

    sliced = Pool(2, Payload((Ring.COUNT,)), slices=((0,),))
    rows = np.stack([random.integers(0, keys // 4, keys), np.arange(keys)], axis=1)
    plus, minus = np.ones((keys, 1), np.int64), np.full((keys, 1), -1)
    sliced.upsert(rows, plus)
    sliced.upsert(rows, minus)
    report("insert with one slice, four records each", lambda: sliced.upsert(rows, plus), keys, times=1)
    bound = random.integers(0, keys // 4, (100_000, 1))
    matches = len(sliced.slice(0, bound)[0])
    report("  slice, per match", lambda: sliced.slice(0, bound), matches)
    report("  delete", lambda: sliced.upsert(rows, minus), keys, times=1)

    one, payload = np.array([[3]]), np.array([[1, 0, 1]])

    def upserts() -> None:
        for _ in range(10_000):
            small.upsert(one, payload)

    def probes() -> None:
        for _ in range(10_000):
            small.probe(one)

    report("call: upsert of one row", upserts, 10_000, "µs")
    report("call: probe of one row", probes, 10_000, "µs")


def strings() -> None:
    few = pa.array([f"Customer#{n % 2000:09d}" for n in range(ROWS)])
    many = pa.array([f"Customer#{n * 7919 % 1000003:09d}" for n in range(ROWS)])
    names = Dictionary()
    names.intern(many)
    report("intern, 2,000 distinct", lambda: names.intern(few), ROWS)
    report("intern, a million distinct, all new", lambda: Dictionary().intern(many), ROWS)
    report("intern, a million distinct, all known", lambda: names.intern(many), ROWS)
    ids = names.intern(many)
    report("back to strings", lambda: names.strings(ids), ROWS)
    report("hash of strings", lambda: hash_strings(many), ROWS)
    report("hash of two integer columns", lambda: hash_columns([ids, ids]), ROWS)


def lanes() -> None:
    rows, nothing = np.random.default_rng(0).integers(0, ROWS, ROWS), np.empty((0, ROWS), np.int64)
    for ring in Ring:
        own = Ring.COUNT if ring is Ring.REAL else ring
        left, right = np.ones((ROWS, ring.words), np.int64), np.ones((ROWS, own.words), np.int64)
        places = np.stack([m.ctypes.data + 8 * m.shape[1] * at for m, at in ((left, np.arange(ROWS)), (right, rows))])
        lane = [0, ring.words, 2, 0, 0, kind_of(ring, ring, False), 1, 0, kind_of(ring, own, True)]
        outcome = np.array([0, ring.words, *lane])
        report(
            f"multiply {ring.name} by {own.name} of picked rows",
            lambda outcome=outcome, places=places: statement_steps.emitted(outcome, nothing, places),  # type: ignore[misc]
            ROWS,
        )


def partitions() -> None:
    layout = StoreLayout((PoolLayout("p", 1, Payload((Ring.COUNT,))),))

    def run(store: Store, messages: list[bytes]) -> bytes:
        keys = np.frombuffer(messages[0], np.int64).reshape(-1, 1)
        store["p"].upsert(keys, np.ones_like(keys))
        return b"done"

    message = np.arange(100).tobytes()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as local, tempfile.TemporaryDirectory() as durable:
        partition = StatePartition(Path(local), durable, layout, [run], "bench")
        start = time.perf_counter()
        for batch in range(1000):
            partition.apply(batch, [message])
        print(f"{'state partition: a batch of 100 rows, logged':<58}{(time.perf_counter() - start) * 1e3:9.1f} µs")


if __name__ == "__main__":
    pools(int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 2_000_000)
    strings()
    lanes()
    partitions()
