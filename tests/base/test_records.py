"""Dataclasses whose methods are compiled later are like those of the library."""

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, replace
from math import nan
from typing import Any, ClassVar

import pytest

from squallpy.base import records

KINDS = [{}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True}, {"frozen": True, "eq": False}]


class Point:
    """One of each kind of field."""

    x: int
    y: float = 2.5
    tags: list[str] = field(default_factory=list, hash=False)
    seen: int = field(default=0, compare=False, repr=False)
    made: list[int] = field(default_factory=list, init=False, compare=False)
    name: str = field(default="p", kw_only=True)
    size: ClassVar[int] = 7

    def __post_init__(self) -> None:
        self.made.append(self.x)


def both(kind: dict[str, bool], of: type = Point) -> tuple[Any, Any]:
    """The same class, as the library and as this module make it."""
    made = []
    for decorate in (dataclasses.dataclass, records.dataclass):
        body = {name: value for name, value in vars(of).items() if name not in ("__dict__", "__weakref__")}
        made.append(decorate(**kind)(type(of.__name__, of.__bases__, body)))
    return made[0], made[1]


def answer(of: Callable[[], object]) -> object:
    try:
        return of()
    except Exception as error:
        return type(error), str(error).replace("unhashable type: ", "")


CALLS: list[Callable[[Any], object]] = [
    lambda c: repr(c(1)),
    lambda c: repr(c(1, 2, ["a"], 3, name="q")),
    lambda c: c(),
    lambda c: c(1, 2, [], 3, "q"),
    lambda c: c(1, other=2),
    lambda c: c(1).tags is c(1).tags,
    lambda c: c(1, made=[]),
    lambda c: (c(1) == c(1), c(1) == c(1, seen=5), c(1) == c(2), c(1) == 1, c(1) != c(1)),
    lambda c: hash(c(1, 2, ["a"])) == hash(c(1, 2, ["b"])) if c.__hash__ not in (None, object.__hash__) else 0,
    lambda c: c.__hash__ is None,
    lambda c: setattr(c(1), "x", 2),
    lambda c: delattr(c(1), "x"),
    lambda c: c(1).size,
    lambda c: repr(replace(c(1, tags=["b"]), x=4)),
    lambda c: replace(c(1), made=[]),
    lambda c: asdict(c(1, 2)),
    lambda c: [f.name for f in dataclasses.fields(c)],
    lambda c: c.__match_args__,
    lambda c: hasattr(c(1), "__dict__"),
    lambda c: c.__init__.__qualname__,
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def differential_methods(kind: dict[str, bool]) -> None:
    theirs, ours = both(kind)
    for call in CALLS:
        assert answer(lambda call=call: call(ours)) == answer(lambda call=call: call(theirs))  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS[:4], ids=str)
def test_values_are_equal_as_those_of_tuples_are(kind: dict[str, bool]) -> None:
    """The library compares fields one by one from Python 3.13 on, and then NaN is not itself."""
    _, ours = both(kind)
    assert ours(1, nan) == ours(1, nan) and (1, nan) == (1, nan)


def test_own_methods_stay() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Named:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and other.name.lower() == self.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return self.name

    assert repr(Named("A")) == "A" and {Named("A")} == {Named("a")}


def test_subclasses() -> None:
    """A dataclass has the fields of its base first; another class may have attributes of its own."""

    @records.dataclass(frozen=True, slots=True)
    class Base:
        a: int

    @records.dataclass(frozen=True, slots=True)
    class More(Base):
        b: int = 2

    class Other(Base):
        pass

    assert repr(More(1)).endswith("More(a=1, b=2)") and More(1) != Base(1) and Base(1) == Base(1)
    other = Other(3)
    other.b = 4  # type: ignore[attr-defined]
    assert (other.a, other.b) == (3, 4)  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        other.a = 4  # type: ignore[misc]


@records.dataclass(frozen=True, slots=True)
class Sent:
    """What goes to another process."""

    a: int
    b: tuple[str, ...] = ()


def test_pickled_and_matched() -> None:
    assert pickle.loads(pickle.dumps(Sent(1, ("x",)))) == Sent(1, ("x",))
    match Sent(1, ("x",)):
        case Sent(a, (b,)):
            assert (a, b) == (1, "x")


def test_a_text_of_itself() -> None:
    @records.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")
