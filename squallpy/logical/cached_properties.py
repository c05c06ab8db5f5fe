"""Properties of operators, computed once and cached."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class CachedProperty(Generic[T]):
    """A property of an operator that is computed at its first reading; `output` is cached in the slot `_output`.

    Of a chain of n operators each would else ask all that are below it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._slot = compute, f"_{compute.__name__}"

    def __get__(self, node: Any, owner: type[Any]) -> T:
        try:
            return cast(T, getattr(node, self._slot))
        except AttributeError:
            value = self._compute(node)
        if not node.borrows:
            object.__setattr__(node, self._slot, value)
        return value
