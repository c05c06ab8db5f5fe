"""Tables for the benchmarks of F-IVM, and the streams that they arrive as.

    python -m bench.fivm.data housing 4 FOLDER [--format csv] [--order sorted] [--deletes 0.1] [--seed 0]

A file for each relation. Batches take a row of each stream in turn: `--set interleave=round-robin`. Housing at scale s
has s houses and shops a postcode, log₂ s institutions, s/2 restaurants, one row of the others: 350,000 rows at 4.

    rounds       the first row of each key in random order, then the second of each, …: soon every key is there
    shuffled     in random order
    sorted       by key, as the generators of the papers wrote them: few keys a batch, each soon complete
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.data.tables import CACHE
from bench.fivm.queries import CHANGES, id_of
from bench.fivm.schemas import SCHEMAS, Schema

POSTCODES = 25_000
LOCATIONS, DATES, ITEMS, INVENTORY = 100, 90, 560, 250_000  # of the retailer at scale 1
CUSTOMERS, PARTS, SUPPLIERS, SALES = 30_000, 200_000, 2_000, 1_500_000  # of SSB at scale 1
NODES, EDGES = 10_000, 100_000  # of the triangles at scale 1
DAYS = 2_556  # of SSB, seven years
COPIES = 2  # of each row of a dimension
Array = npt.NDArray[np.number]
Columns = Mapping[str, Array]
Tables = Mapping[str, Columns]


@dataclass(frozen=True)
class Dataset:
    """The tables of a schema at a scale, as streams.

    Args: share: the part of the keys that there are. order: one of ORDERS. deletes: so many deletes for each insert,
    at most 1, each of a row that came before.
    """

    schema: Schema
    scale: float
    share: float = 1.0
    order: str = "rounds"
    deletes: float = 0.0
    seed: int = 0

    @property
    def name(self) -> str:
        marks = [f"-share-{self.share:g}"] * (self.share != 1) + [f"-{self.order}"] * (self.order != "rounds")
        marks += [f"-deletes-{self.deletes:g}"] * (self.deletes > 0) + [f"-seed-{self.seed}"] * (self.seed > 0)
        return f"{self.schema.name}-{self.scale:g}{''.join(marks)}"

    def tables(self) -> dict[str, pa.Table]:
        """Make all streams."""
        random = np.random.default_rng(self.seed)
        made = GENERATORS[self.schema.name](self.scale, self.share, random)
        return {name: self._stream(name, made[name], random) for name in self.schema.relations}

    def _stream(self, name: str, columns: Columns, random: np.random.Generator) -> pa.Table:
        keys, rows = self.schema.join_variables, len(next(iter(columns.values())))
        kinds = {column: np.int64 if column in keys else np.float64 for column in self.schema.columns[name]}
        typed = {column: np.asarray(columns[column], kind) for column, kind in kinds.items()}
        order = ORDERS[self.order](np.column_stack([typed[c] for c in typed if c in keys]), random)
        if not self.deletes:
            return pa.table({column: values[order] for column, values in typed.items()})
        born = np.arange(rows, dtype=np.float64)
        dead = np.sort(random.permutation(rows)[: int(self.deletes * rows)])
        died = random.uniform(born[dead], rows)
        time = np.argsort(np.concatenate([born, died]), kind="stable")
        events = np.concatenate([np.arange(rows), dead])[time]
        out = {column: values[order[events]] for column, values in typed.items()}
        return pa.table({CHANGES: np.where(time < rows, "+", "-"), **out, id_of(name): events})

    def write(self, folder: Path, format: str = "parquet") -> None:
        """Write a file for each stream."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables().items():
            path = folder / f"{name}.{format}"
            if format == "csv":
                pa.csv.write_csv(table, path)
            else:
                pq.write_table(table, path)

    def cached(self) -> Path:
        """Make the folder of the Parquet files, if it is not there yet."""
        folder = CACHE / f"fivm-{self.name}"
        if not (folder / "done").exists():
            self.write(folder)
            (folder / "done").touch()
        return folder


def _rounds(keys: Array, random: np.random.Generator) -> Array:
    """Order rows by how often their key came before, each round at random."""
    _, group, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    by_key = np.argsort(group.reshape(-1), kind="stable")
    turns = np.empty(len(keys), np.int64)
    turns[by_key] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.lexsort((random.permutation(len(keys)), turns))


ORDERS: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    "rounds": _rounds,
    "shuffled": lambda keys, random: random.permutation(len(keys)),
    "sorted": lambda keys, random: np.arange(len(keys)),
}


def housing(scale: float, share: float, random: np.random.Generator) -> Tables:
    """Make the tables of houses and what is around them, as of Schleich, Olteanu and Ciucanu (SIGMOD 2016), 4.

    Values are multiples of 1/k in [0, 1], those of prices follow from the others.
    """
    postcodes, many = np.arange(max(1, int(POSTCODES * share))), ceil(scale)
    counts = {
        "house": many, "shop": many, "institution": max(1, round(log2(many))), "restaurant": max(1, ceil(scale / 2)),
        "demographics": 1, "transport": 1,
    }  # fmt: skip
    levels = {
        "house": [100, 0, 5, 4, 20, 1, 1, 1, 1, 3], "shop": [16, 2, 1, 1, 1], "institution": [11, 9_999],
        "restaurant": [16, 2], "demographics": [9_999, 500, 100, 10], "transport": [30, 10, 9_999],
    }  # fmt: skip
    out = dict[str, dict[str, Array]]()
    for relation, count in counts.items():
        key, *columns = SCHEMAS["housing"].columns[relation]
        out[relation] = {key: np.repeat(postcodes, count)}
        for column, most in zip(columns, levels[relation], strict=True):
            out[relation][column] = random.integers(0, most, len(postcodes) * count, endpoint=True) / max(most, 1)
    house = out["house"]
    house["price"] = (
        0.4 * house["livingarea"] + 0.2 * house["nbbedrooms"] + 0.1 * house["kitchensize"] + 0.1 * house["garden"]
        + random.uniform(0, 0.2, len(house["price"]))
    )  # fmt: skip
    return out


def retailer(scale: float, share: float, random: np.random.Generator) -> Tables:
    """Make an inventory by location, date and item, with their properties and the weather."""
    locations, items = max(2, int(LOCATIONS * share)), max(2, int(ITEMS * share))
    dates, zips = max(2, int(DATES * share)), max(1, locations * 9 // 10)
    there = locations * dates * items
    picked = np.sort(random.choice(there, min(there, int(INVENTORY * scale * share)), replace=False))
    ground = np.arange(locations * dates)
    keys: dict[str, dict[str, Array]] = {
        "inventory": {"locn": picked // (dates * items), "dateid": picked // items % dates, "ksn": picked % items},
        "location": {"locn": np.arange(locations), "zip": random.integers(0, zips, locations)},
        "census": {"zip": np.arange(zips)},
        "item": {"ksn": np.arange(items)},
        "weather": {"locn": ground // dates, "dateid": ground % dates},
    }
    return _filled(SCHEMAS["retailer"], keys, {}, random)


def ssb(scale: float, share: float, random: np.random.Generator) -> Tables:
    """Make a star of orders, each row of a dimension COPIES times: a row of the fact is in COPIES⁴ of the join."""
    sizes = {
        name: max(2, int(size * scale * share))
        for name, size in {"custkey": CUSTOMERS, "partkey": PARTS, "suppkey": SUPPLIERS}.items()
    } | {"orderdate": DAYS}
    orders = max(1, int(SALES * scale * share))
    orderkey, linenumber = _lines(orders, random)
    lines = len(orderkey)
    facts: dict[str, Array] = {name: random.integers(0, size, lines) for name, size in sizes.items()}
    keys = {"lineorder": facts | {"orderkey": orderkey / orders, "linenumber": linenumber}} | {
        relation: {key: np.repeat(np.arange(sizes[key]), COPIES)}
        for relation, key in zip(("customer", "part", "supplier", "dates"), sizes, strict=True)
    }
    return _filled(SCHEMAS["ssb"], keys, {"commitdate": DAYS, "dayinyear": 365}, random)


def tpch(scale: float, share: float, random: np.random.Generator) -> Tables:
    """Make a snowflake of orders, each row COPIES times but those of lineitem."""
    orders, customers, parts, suppliers = (
        max(2, int(size * scale * share)) for size in (SALES, 150_000, PARTS, 10_000)
    )
    orderkey, linenumber = _lines(orders, random)
    partkey = random.integers(0, parts, len(orderkey))
    offered = (np.arange(parts)[:, None] + np.arange(4) * max(1, suppliers // 4)) % suppliers
    suppkey = offered[partkey, random.integers(0, 4, len(orderkey))]
    keys: dict[str, dict[str, Array]] = {
        "lineitem": {"orderkey": orderkey, "partkey": partkey, "suppkey": suppkey, "linenumber": linenumber},
        "orders": {"orderkey": np.arange(orders), "custkey": random.integers(0, customers, orders)},
        "customer": {"custkey": np.arange(customers), "nationkey": random.integers(0, 25, customers)},
        "nation": {"nationkey": np.arange(25), "regionkey": np.arange(25) % 5},
        "region": {"regionkey": np.arange(5)},
        "partsupp": {"partkey": np.repeat(np.arange(parts), 4), "suppkey": offered.reshape(-1)},
        "part": {"partkey": np.arange(parts)},
        "supplier": {"suppkey": np.arange(suppliers)},
    }
    twice = {
        relation: {key: np.repeat(values, 1 if relation == "lineitem" else COPIES) for key, values in columns.items()}
        for relation, columns in keys.items()
    }
    dates = dict.fromkeys(("shipdate", "commitdate", "receiptdate", "orderdate"), DAYS)
    return _filled(SCHEMAS["tpch"], twice, dates, random)


def triangle(scale: float, share: float, random: np.random.Generator) -> Tables:
    """Make a random graph, and each relation of its edges in another order."""
    nodes, edges = (max(2, int(size * scale * share)) for size in (NODES, EDGES))
    ends = random.integers(0, nodes, (edges, 2))
    return {
        relation: dict(zip(columns, random.permutation(ends).T, strict=True))
        for relation, columns in SCHEMAS["triangle"].columns.items()
    }


def _lines(orders: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Make one to seven lines for each order."""
    counts = random.integers(1, 8, orders)
    orderkey = np.repeat(np.arange(orders), counts)
    return orderkey, np.arange(len(orderkey)) - np.repeat(np.cumsum(counts) - counts, counts) + 1


def _filled(
    schema: Schema, keys: Mapping[str, dict[str, Array]], most: Mapping[str, int], random: np.random.Generator
) -> Tables:
    """Add random integers, up to 50 unless `most` says otherwise, for the columns that are missing."""
    out = dict[str, Columns]()
    for relation, columns in schema.columns.items():
        rows = len(next(iter(keys[relation].values())))
        more = {c: random.integers(0, most.get(c, 50), rows, endpoint=True) for c in columns if c not in keys[relation]}
        out[relation] = keys[relation] | more
    return out


GENERATORS: Mapping[str, Callable[[float, float, np.random.Generator], Tables]] = {
    "housing": housing,
    "retailer": retailer,
    "ssb": ssb,
    "tpch": tpch,
    "triangle": triangle,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fivm.data", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("schema", choices=SCHEMAS)
    parser.add_argument("scale", type=float)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=("parquet", "csv"), default="parquet")
    add_options(parser)
    given = parser.parse_args()
    dataset_of(given).write(given.folder, given.format)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that a dataset has beside its schema and scale."""
    parser.add_argument("--share", type=float, default=1.0, help="part of the keys that there are  [default: 1]")
    parser.add_argument("--order", choices=ORDERS, default="rounds", help="of a stream's rows  [default: rounds]")
    parser.add_argument("--deletes", type=float, default=0.0, help="so many deletes for each insert  [default: 0]")
    parser.add_argument("--seed", type=int, default=0)


def dataset_of(given: argparse.Namespace) -> Dataset:
    """Make the dataset that a command line describes."""
    return Dataset(SCHEMAS[given.schema], given.scale, given.share, given.order, given.deletes, given.seed)


if __name__ == "__main__":
    main()
