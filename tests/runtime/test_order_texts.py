"""Texts in the order of ARRAYs and STRUCTs: they compare as the values do."""

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.evaluate.order_texts import order_text, order_with_value, value_in_order

CODE = "(n[td)"  # STRUCT<a: DECIMAL, b: ARRAY<VARCHAR>, c: DOUBLE>
NUMBERS = st.none() | st.decimals(min_value=-(10**20), max_value=10**20, places=2)
TEXTS = st.none() | st.text(st.sampled_from('\x00\x01\x02a"\\é😀'), max_size=4)
DOUBLES = st.none() | st.floats()
VALUES = st.tuples(NUMBERS, st.none() | st.lists(TEXTS, max_size=3), DOUBLES)


def held(value: tuple[Any, Any, Any]) -> str:
    number, texts, real = value
    shown = "NaN" if real is not None and math.isnan(real) else real
    shown = shown if not isinstance(shown, float) or math.isfinite(shown) else f"{'-' * (shown < 0)}Infinity"
    c = json.dumps(shown) if not isinstance(shown, float) else repr(shown)
    return f'{{"a":{"null" if number is None else number},"b":{json.dumps(texts, ensure_ascii=False)},"c":{c}}}'


def key(value: Any) -> tuple[Any, ...]:
    """The order by Python: NULL first, NaN last."""
    match value:
        case None:
            return (False,)
        case tuple() | list():
            return (True, *map(key, value))
        case float():
            return (True, math.isnan(value), 0.0 if math.isnan(value) else value)
    return (True, value)


@given(VALUES, VALUES)
def test_texts_are_in_the_order_of_values(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> None:
    first, second = (order_text(held(value), CODE) for value in (a, b))
    assert (first < second, first == second) == (key(a) < key(b), key(a) == key(b))


@given(VALUES, VALUES)
def test_the_value_is_found_behind_its_order(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> None:
    first, second = (order_with_value(held(value), CODE) for value in (a, b))
    assert (value_in_order(first), value_in_order(second)) == (held(a), held(b))
    assert key(a) == key(b) or (first < second) == (key(a) < key(b))
