"""Products of lanes, printed: counts and exact sums in registers, sums of doubles in memory."""

from collections import Counter
from collections.abc import Sequence

from squallpy.base.rings import Payload, Ring
from squallpy.base.rings.payload import ROOMS
from squallpy.codegen.names import Lines, Names, NotCompilable

Factors = Sequence[tuple[Ring, int, str]]  # of each its ring, its offset, and the name of where its payload is
_COUNTED, _TIMES = 4, 8  # of `payload_products.kind_of`


class PayloadRooms:
    """Rooms for payloads that one function reads of each pool at a time: narrow ones are not read where they are.

    PayloadRooms().print("m_orders", "record", ⟨COUNT, EXACT⟩)   →   payload_of(m_orders, record, 2, 2, 1)
    """

    def __init__(self) -> None:
        self._used = Counter[str]()

    def print(self, pool: str, record: str, payload: Payload) -> str:
        """Print where a record's payload is; raises NotCompilable."""
        if not payload.can_be_narrow:
            return f"words_of({pool}, {record}, {payload.width})"
        self._used[pool] += 1
        if (room := self._used[pool]) >= ROOMS:
            raise NotCompilable(f"{room} lookups in {pool}")
        exact = sum((ring is Ring.EXACT) << lane for lane, ring in enumerate(payload.rings))
        return f"payload_of({pool}, {record}, {len(payload.rings)}, {exact}, {room})"


def print_real_product(body: Lines, names: Names, ring: Ring, factors: Factors, times: int, place: str) -> str:
    """Print a product of sums of doubles and counts, at the place where it is added from. Returns its words."""
    own = [f"{where} + {8 * at}" for kind, at, where in factors if kind is ring]
    counts = [f"load({where}, {at})" for kind, at, where in factors if kind is Ring.COUNT]
    if len(own) + len(counts) < len(factors) or (len(own) > 1 and ring is Ring.REAL):
        raise NotCompilable(f"a product of {', '.join(kind.name for kind, _, _ in factors)}")
    out = names("real")
    body(f"{out} = {place}")
    for n, factor in enumerate(own):
        body(f"combine_lane({out}, {factor}, {ring + (_TIMES if n else 0)}, steps)")
    if counts or times != 1 or not own:
        count = " * ".join([*counts, *([f"({times})"] if times != 1 or not counts else [])])
        body(f"combine_count({out}, {count}, {ring + _COUNTED + (_TIMES if own else 0)}, steps)")
    words = [names("word") for _ in range(ring.words)]
    for i, word in enumerate(words):
        body(f"{word} = load({out}, {i})")
    return ", ".join(words)


def print_product(body: Lines, names: Names, ring: Ring, factors: Factors, times: int, value: str = "") -> str:
    """Print a product of lanes: a sum times a count is cheap, so counts come last. Returns its words.

    Args:
        times: A constant factor.
        value: The word of another one, if there is one.
    """
    if ring is Ring.COUNT:
        name = names("n")
        others = [f"({times})"] * (times != 1) + [f"({value})"] * bool(value)
        code = " * ".join([f"load({where}, {at})" for _, at, where in factors] + others)
        body(f"{name} = {code or 1}")
        return name
    factors = sorted(factors, key=lambda factor: factor[0] is Ring.COUNT)
    if not factors and value:
        raise NotCompilable(f"{value} as a product")
    if not factors:
        return f"{times}, {-1 if times < 0 else 0}"
    lo, hi = names("lo"), names("hi")
    for n, (own, at, where) in enumerate(factors):
        low = f"load({where}, {at})"
        words = f"{low}, sign({low})" if own is Ring.COUNT else f"{low}, load({where}, {at + 1})"
        body(f"{lo}, {hi} = " + (words if n == 0 else f"exact_multiply({lo}, {hi}, {words})"))
    if times != 1:
        body(f"{lo}, {hi} = exact_multiply({lo}, {hi}, {times}, {-1 if times < 0 else 0})")
    if value:
        body(f"{lo}, {hi} = exact_multiply({lo}, {hi}, {value}, sign({value}))")
    return f"{lo}, {hi}"
