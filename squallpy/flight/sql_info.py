"""Facts about the SQL of a session, by the numbers of Flight SQL's enum SqlInfo, as JDBC and ODBC ask for them."""

from collections.abc import Sequence

import pyarrow as pa

from squallpy import __version__
from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Int32:
    """A number of an enumeration, or a set of them as bits."""

    value: int


Fact = bool | int | str | Int32 | list[str] | dict[int, list[int]]
NAMES = ("string_value", "bool_value", "bigint_value", "int32_bitmask", "string_list", "int32_to_int32_list_map")
KINDS: tuple[tuple[type, pa.DataType], ...] = (
    (str, pa.string()), (bool, pa.bool_()), (int, pa.int64()), (Int32, pa.int32()), (list, pa.list_(pa.string())),
    (dict, pa.map_(pa.int32(), pa.list_(pa.int32()))),
)  # fmt: skip
SCHEMA = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union([pa.field(name, kind) for name, (_, kind) in zip(NAMES, KINDS, strict=True)]),
            nullable=False,
        ),
    ]
)
FACTS: dict[int, Fact] = {
    0: "squallpy", 1: __version__, 2: pa.__version__,
    3: True,  # it is read only
    4: True, 5: False,  # SQL, and no Substrait
    8: Int32(0), 9: False,  # no transactions, no cancelling
    100: Int32(0), 101: Int32(0),  # no timeouts
    500: False, 501: False, 502: False,  # no CREATE of catalogs, schemas, tables
    503: Int32(1), 504: "`", 505: Int32(1),  # names in any case, quoted ones, too
    506: True,  # all tables can be read
    507: Int32(1),  # NULL is less than all values
    508: [], 509: [], 510: [], 511: [], 512: [],  # lists of keywords and functions: docs/sql.md has them
    513: "\\", 514: "",
    515: True, 516: True, 517: {}, 518: True, 519: False, 520: True, 521: True,
    522: Int32(0b11), 523: True, 524: False, 525: Int32(0b111), 526: Int32(0b1), 527: False,
    528: Int32(2),  # all outer joins
    529: "schema", 530: "", 531: "catalog", 532: True,
    533: Int32(0), 534: Int32(0), 535: Int32(0), 536: False, 537: False,
    538: Int32(0b1111), 539: True, 540: Int32(0b11),  # subqueries of all kinds, UNION and UNION ALL
    **{number: 0 for number in range(541, 562) if number != 556}, 556: False,  # no limits that are known
    562: Int32(0), 563: False, 564: Int32(0b1), 565: False, 566: False,
    567: Int32(0b10), 568: Int32(0), 569: Int32(0b10), 570: Int32(0), 571: Int32(0),  # results forward, read only
    572: False, 573: False, 574: False, 575: False, 576: False,
}  # fmt: skip


def facts_table(wanted: Sequence[int]) -> pa.Table:
    """Return the facts of some numbers, of those that are known, or all."""
    numbers = [number for number in wanted if number in FACTS] if wanted else [*FACTS]
    kinds, places = [], list[int]()
    values: list[list[object]] = [[] for _ in KINDS]
    for number in numbers:
        fact = FACTS[number]
        kind = next(i for i, (type, _) in enumerate(KINDS) if isinstance(fact, type))
        kinds.append(kind)
        places.append(len(values[kind]))
        value = fact.value if isinstance(fact, Int32) else [*fact.items()] if isinstance(fact, dict) else fact
        values[kind].append(value)
    children = [pa.array(each, type) for each, (_, type) in zip(values, KINDS, strict=True)]
    union = pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), pa.array(places, pa.int32()), children, [*NAMES])
    return pa.Table.from_arrays([pa.array(numbers, pa.uint32()), union], schema=SCHEMA)
