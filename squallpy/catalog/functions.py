"""Functions as a script declares them.

CREATE FUNCTION net(gross DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN gross / (1 + rate)
CREATE FUNCTION short(name VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$ return name and name.split()[0] $$
"""

from dataclasses import field
from typing import Any

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import Type


def signature(name: str) -> str:
    """Name a function apart from tables: net  →  net()"""
    return f"{name.lower()}()"


@dataclass(frozen=True, slots=True)
class DefinedFunction:
    """A function of rows: a formula of its parameters, which may be a call of Python.

    Args:
        called: its name as declared.
        parameters: the columns that stand for them in `body`, the binder's, opaque here.
        body: the formula, bound.
        reads: the signatures of the functions in it.
    """

    called: str
    parameters: tuple[Any, ...]
    returns: Type
    body: Any = field(repr=False)
    reads: frozenset[str] = frozenset()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name of its entry in the catalogue, where tables may have its own."""
        return signature(self.called)

    @property
    def declaration(self) -> str:
        """Its name with parameters and result: net(gross DOUBLE, rate DOUBLE) RETURNS DOUBLE"""
        parameters = ", ".join(f"{each.name} {each.type}" for each in self.parameters)
        return f"{self.called}({parameters}) RETURNS {self.returns}"
