"""The streams of Nexmark of any size: people who open auctions, and bids, three of four of them on what is hot.

python -m bench.data.nexmark EVENTS FOLDER [SEED]      person.parquet, auction.parquet, bid.parquet …

Of 50 events one is a person, three are auctions and 46 bids, ten thousand a second, as in the generator of Apache Beam,
whose names and shares these are; what comes is of a seed, so that everybody has the same.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Numbers = npt.NDArray[np.int64]
PEOPLE, AUCTIONS, ROUND = 1, 3, 50  # of so many events
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
MICROS = 100  # between events
DURATION = 20_000  # of an auction on average, in events
START = 1_775_001_600_000_000  # 2026-04-01 00:00:00, in µs
ACTIVE_PEOPLE, ACTIVE_AUCTIONS = 1_000, 100  # the latest, of whom sellers, bidders and what is bid on are
HOT_SELLERS, HOT_AUCTIONS, HOT_BIDDERS = 100, 100, 100  # one of so many is hot
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
FIRST = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CHANNEL_IDS = 10_000
SIDES = 100  # rows of the table that bids are joined with


def events(count: int, seed: int = 0, micros: int = MICROS) -> dict[str, pa.Table]:
    """Make `person`, `auction` and `bid`, each in the order of its events, and the table `side_input`.

    events(100)["bid"]   →   92 rows

    Args:
        micros: The time between two events.
    """
    random = np.random.default_rng(seed)
    number = np.arange(count)
    place = number % ROUND
    at = START + number * micros
    is_person, is_auction = place < PEOPLE, (place >= PEOPLE) & (place < PEOPLE + AUCTIONS)
    people, auctions = (np.cumsum(here, dtype=np.int64) for here in (is_person, is_auction))  # so many by then
    is_bid = ~(is_person | is_auction)
    return {
        "person": _people(random, at[is_person]),
        "auction": _auctions(random, at[is_auction], people[is_auction], DURATION * micros),
        "bid": _bids(random, at[is_bid], people[is_bid], auctions[is_bid]),
        "side_input": pa.table({"key": np.arange(SIDES), "value": [f"side {key}" for key in range(SIDES)]}),
    }


def _people(random: np.random.Generator, at: Numbers) -> pa.Table:
    n = len(at)
    first, last = random.integers(0, len(FIRST), n), random.integers(0, len(LAST), n)
    names = [f"{FIRST[a]} {LAST[b]}" for a, b in zip(first, last, strict=True)]
    cards = random.integers(0, 10_000, (n, 4))
    return pa.table(
        {
            "id": FIRST_ID + np.arange(n),
            "name": names,
            "emailAddress": [f"{name.lower().replace(' ', '.')}@example.com" for name in names],
            "creditCard": [" ".join(f"{part:04}" for part in card) for card in cards],
            "city": [CITIES[i] for i in random.integers(0, len(CITIES), n)],
            "state": [STATES[i] for i in random.integers(0, len(STATES), n)],
            "dateTime": _moments(at),
            "extra": _extras(random, n),
        }
    )


def _auctions(random: np.random.Generator, at: Numbers, people: Numbers, duration: int) -> pa.Table:
    n = len(at)
    initial = _prices(random, n)
    return pa.table(
        {
            "id": FIRST_ID + np.arange(n),
            "itemName": [f"item {i}" for i in random.integers(0, 1_000, n)],
            "description": _extras(random, n),
            "initialBid": initial,
            "reserve": initial + _prices(random, n),
            "dateTime": _moments(at),
            "expires": _moments(at + np.ceil(random.exponential(duration, n)).astype(np.int64)),
            "seller": FIRST_ID + _chosen(random, people, ACTIVE_PEOPLE, HOT_SELLERS, 0.75),
            "category": FIRST_CATEGORY + random.integers(0, CATEGORIES, n),
            "extra": _extras(random, n),
        }
    )


def _bids(random: np.random.Generator, at: Numbers, people: Numbers, auctions: Numbers) -> pa.Table:
    n = len(at)
    channel = random.integers(0, CHANNEL_IDS, n)
    is_hot = random.random(n) < 0.5
    hot = random.integers(0, len(CHANNELS), n)
    named = [CHANNELS[h] if is_one else f"channel-{c}" for is_one, h, c in zip(is_hot, hot, channel, strict=True)]
    folder = random.integers(0, 100, (n, 3))
    urls = [
        f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1" + ("" if is_one else f"&channel_id={number}")
        for (a, b, c), is_one, number in zip(folder, is_hot, channel, strict=True)
    ]
    return pa.table(
        {
            "auction": FIRST_ID + _chosen(random, np.maximum(auctions, 1), ACTIVE_AUCTIONS, HOT_AUCTIONS, 0.5),
            "bidder": FIRST_ID + _chosen(random, people, ACTIVE_PEOPLE, HOT_BIDDERS, 0.75),
            "price": _prices(random, n),
            "channel": named,
            "url": urls,
            "dateTime": _moments(at),
            "extra": _extras(random, n),
        }
    )


def _chosen(random: np.random.Generator, there: Numbers, active: int, hot: int, share: float) -> Numbers:
    """Choose one of those that are there: a share of all times the last hot one, else one of the latest."""
    hottest = (there - 1) // hot * hot
    back = (random.random(len(there)) * np.minimum(there, active)).astype(np.int64)
    return np.where(random.random(len(there)) < share, hottest, there - 1 - back)


def _prices(random: np.random.Generator, n: int) -> Numbers:
    return np.round(10.0 ** (random.random(n) * 6) * 100).astype(np.int64)


def _extras(random: np.random.Generator, n: int) -> list[str]:
    letters = random.integers(ord("a"), ord("z") + 1, (n, 16)).astype(np.uint8)
    return [row.tobytes().decode() for row in letters]


def _moments(micros: Numbers) -> pa.Array:
    return pa.array(micros).cast(pa.timestamp("us"))


def write(count: int, folder: Path, seed: int = 0) -> Path:
    """Write the streams and the table as Parquet files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in events(count, seed).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    write(int(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:4]))
