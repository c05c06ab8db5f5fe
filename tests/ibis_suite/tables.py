"""Tables with the columns of Ibis' test data, whose rows are not shipped with it."""

import datetime as dt
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa


def alltypes() -> pa.Table:
    """Make ten rows a day of two years, as those of the test data are."""
    n = np.arange(7300)
    digit = n % 10
    days = [dt.datetime(2009, 1, 1) + dt.timedelta(days=int(i)) for i in n // 10]
    moments = [
        day + dt.timedelta(minutes=10 * (day.day - 1) + int(d), milliseconds=10 * int(d) * (int(d) + 1) // 2)
        for day, d in zip(days, digit, strict=True)
    ]
    return pa.table(
        {
            "id": pa.array(n, pa.int32()),
            "bool_col": pa.array(n % 2 == 0),
            "tinyint_col": pa.array(digit, pa.int8()),
            "smallint_col": pa.array(digit, pa.int16()),
            "int_col": pa.array(digit, pa.int32()),
            "bigint_col": pa.array(digit * 10, pa.int64()),
            "float_col": pa.array((digit * 1.1).astype(np.float32), pa.float32()),
            "double_col": pa.array(digit * 10.1),
            "date_string_col": pa.array([f"{day:%m/%d/%y}" for day in days]),
            "string_col": pa.array([str(d) for d in digit]),
            "timestamp_col": pa.array(moments, pa.timestamp("us")),
            "year": pa.array([day.year for day in days], pa.int32()),
            "month": pa.array([day.month for day in days], pa.int32()),
        }
    )


def diamonds(chosen: random.Random) -> pd.DataFrame:
    cuts, colors, clarities = ("Fair", "Good", "Ideal", "Premium", "Very Good"), "DEFGHIJ", ("SI1", "VS2", "VVS1", "IF")
    size = 500
    rows: dict[str, Any] = {
        "carat": [round(chosen.uniform(0.2, 3.0), 2) for _ in range(size)],
        "cut": chosen.choices(cuts, k=size),
        "color": chosen.choices(colors, k=size),
        "clarity": chosen.choices(clarities, k=size),
        "depth": [round(chosen.uniform(55, 70), 1) for _ in range(size)],
        "table": [round(chosen.uniform(50, 65), 1) for _ in range(size)],
        "price": [chosen.randrange(326, 18824) for _ in range(size)],
    }
    rows |= {name: [round(chosen.uniform(3, 9), 2) for _ in range(size)] for name in "xyz"}
    return pd.DataFrame(rows)


BATTING = ["G", "AB", "R", "H", "X2B", "X3B", "HR", "RBI", "SB", "CS", "BB", "SO", "IBB", "HBP", "SH", "SF", "GIDP"]


def batting(chosen: random.Random) -> pd.DataFrame:
    players = [f"player{i:02d}" for i in range(60)]
    rows = [
        {
            "playerID": player,
            "yearID": year,
            "stint": 1,
            "teamID": chosen.choice(["BOS", "NYA", "CLE", "DET"]),
            "lgID": chosen.choice(["AL", "NL", "PL"]),
        }
        | {name: chosen.randrange(0, 12 if name == "RBI" else 160) for name in BATTING}
        for player in players
        for year in (1871, 1980, 1981, *range(2006, 2016))
    ]
    return pd.DataFrame(rows)


def awards_players(chosen: random.Random) -> pd.DataFrame:
    awards = ("Gold Glove", "Most Valuable Player", "Triple Crown", "Rookie of the Year")
    rows = [
        {
            "playerID": f"player{chosen.randrange(80):02d}",
            "awardID": chosen.choice(awards),
            "yearID": chosen.choice([1980, 1981, *range(2004, 2016)]),
            "lgID": chosen.choice(["AL", "NL", "ML"]),
            "tie": chosen.choice([None, "Y"]),
            "notes": chosen.choice([None, "P", "OF", "1B"]),
        }
        for _ in range(300)
    ]
    return pd.DataFrame(rows).drop_duplicates(["playerID", "awardID", "yearID", "lgID"]).reset_index(drop=True)


def astronauts(chosen: random.Random, schema: Mapping[str, Any]) -> pd.DataFrame:
    values: dict[str, Callable[[int], Any]] = {
        "int64": lambda i: i % 37,
        "float64": lambda i: i / 4,
        "string": lambda i: f"text {i % 11}",
    }
    columns = {name: [values[str(dtype)](i) for i in range(120)] for name, dtype in schema.items()}
    return pd.DataFrame(columns | {"id": range(1, 121), "year_of_selection": [1959 + i % 50 for i in range(120)]})
