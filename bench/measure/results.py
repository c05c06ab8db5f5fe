"""Results as they are kept, and numbers as people read them."""

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]
Results = dict[tuple[str, float, str], Result]  # engine, scale, query/batch rows


def load(folder: Path) -> Results:
    out: Results = {}
    for path in sorted(folder.glob("*-sf*.json")):
        engine, scale = path.stem.rsplit("-sf", 1)
        for key, result in json.loads(path.read_text()).items():
            out[engine, float(scale), key] = result
    return out


def quotient(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def rate(result: Result) -> str:
    return f"{result['tuples_per_second']:,.0f}"


def ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:,.0f}"


def ratio(result: Result) -> str:
    value = quotient(result["last_tenth"], result["second_tenth"])
    return "" if value is None else f"{value:.2f}"
