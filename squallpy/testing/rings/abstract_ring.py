"""Rings whose elements are Python objects: what a view tree needs of a ring, and rings of formal sums."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

Element = TypeVar("Element")
Basis = TypeVar("Basis", bound=Hashable)


class AbstractRing(ABC, Generic[Element]):
    """The operations of a ring, perhaps without commuting products, in which values of variables are lifted."""

    @property
    @abstractmethod
    def zero(self) -> Element: ...

    @property
    @abstractmethod
    def one(self) -> Element: ...

    @abstractmethod
    def add(self, a: Element, b: Element) -> Element: ...

    @abstractmethod
    def multiply(self, a: Element, b: Element) -> Element: ...

    @abstractmethod
    def scale(self, a: Element, times: int) -> Element:
        """Add up an element so many times; −1 is the inverse of addition."""

    @abstractmethod
    def lift(self, variable: str, value: object) -> Element:
        """Return g_X(value) of a variable X."""


class FormalSums(AbstractRing[Mapping[Basis, float]], Generic[Basis]):
    """Sums of multiples of basis elements, of which two have a product that is one, or 0.

    {a: 2} · {b: 3, c: 1}   →   {ab: 6, ac: 2}
    """

    @property
    @abstractmethod
    def unit(self) -> Basis:
        """The basis element that is 1."""

    @abstractmethod
    def product(self, a: Basis, b: Basis) -> Basis | None:
        """Multiply basis elements; None is 0."""

    @property
    def zero(self) -> Mapping[Basis, float]:
        return {}

    @property
    def one(self) -> Mapping[Basis, float]:
        return {self.unit: 1}

    def add(self, a: Mapping[Basis, float], b: Mapping[Basis, float]) -> Mapping[Basis, float]:
        return {x: n for x in {**a, **b} if (n := a.get(x, 0) + b.get(x, 0))}

    def scale(self, a: Mapping[Basis, float], times: int) -> Mapping[Basis, float]:
        return {x: n * times for x, n in a.items() if times}

    def multiply(self, a: Mapping[Basis, float], b: Mapping[Basis, float]) -> Mapping[Basis, float]:
        found: dict[Basis, float] = {}
        for x, n in a.items():
            for y, m in b.items():
                if (z := self.product(x, y)) is not None:
                    found[z] = found.get(z, 0) + n * m
        return {x: n for x, n in found.items() if n}
