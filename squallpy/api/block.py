"""Query blocks as relations write them: FROM, WHERE, GROUP BY and so on, text by text.

orders.filter(…).select("id")   →   SELECT `orders`.`id` FROM `orders` WHERE (`orders`.`total` > 10)
"""

from collections.abc import Mapping
from dataclasses import replace

from squallpy.api.expressions import Row
from squallpy.base.records import dataclass
from squallpy.frontend.declaration_text import qualified, quote_name


@dataclass(frozen=True, slots=True)
class Block:
    """A query block.

    Args:
        source: What follows FROM.
        names: The qualifiers in it.
        columns: SQL of what it returns, by name.
        is_relation: True if `source` is the name of a relation, all of whose rows and columns are returned.
        is_simple: True if all columns are columns of the source.
    """

    source: str
    names: tuple[str, ...]
    columns: Mapping[str, str]
    is_relation: bool = False
    is_simple: bool = True
    where: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    distinct: bool = False
    order: tuple[str, ...] = ()
    limit: int | None = None
    offset: int = 0
    window: str = ""

    @property
    def row(self) -> Row:
        """The row that lambdas get."""
        return Row(self.columns)

    @property
    def is_cut(self) -> bool:
        """True if it has a limit."""
        return self.limit is not None or self.offset > 0

    def open(self, keeps_order: bool = False) -> "Block":
        """Make a block to which anything can be added: itself, or one over it."""
        is_open = self.is_simple and not self.distinct and not self.is_cut and (keeps_order or not self.order)
        return self if is_open else self.nested(self.names[0])

    def nested(self, name: str) -> "Block":
        """Make a block that reads this one under a name; an order without a limit ends with it."""
        inner = self if self.is_cut else replace(self, order=())
        return Block(f"({inner.text}) AS {quote_name(name)}", (name,), _of(name, self.columns))

    def named(self, taken: tuple[str, ...]) -> tuple[str, "Block"]:
        """Write it as a source beside others, whose names are taken; also returns the block that has it alone."""
        name = unique(self.names[0], taken)
        if not self.is_relation:
            block = self.nested(name)
        elif name == self.names[0]:
            block = self
        else:
            block = Block(f"{self.source} AS {quote_name(name)}", (name,), _of(name, self.columns))
        return block.source, block

    @property
    def text(self) -> str:
        """The block as SQL."""
        items = ", ".join(_item(name, text) for name, text in self.columns.items())
        clauses = [f"SELECT {'DISTINCT ' if self.distinct else ''}{items}", f"FROM {self.source}"]
        clauses += [f"WHERE {' AND '.join(self.where)}"] if self.where else []
        clauses += [f"GROUP BY {', '.join(self.group)}"] if self.group else []
        clauses += [f"ORDER BY {', '.join(self.order)}"] if self.order else []
        clauses += [f"LIMIT {self.limit}"] if self.limit is not None else []
        clauses += [f"OFFSET {self.offset}"] if self.offset else []
        clauses += [self.window] if self.window else []
        return "\n".join(clauses)


def relation_block(name: str, columns: tuple[str, ...]) -> Block:
    """Make the block that returns a relation as it is."""
    called = name.rpartition(".")[2]
    return Block(qualified(name), (called,), _of(called, columns), is_relation=True)


def with_columns(block: Block, columns: Mapping[str, str]) -> Block:
    """Let a block return other columns."""
    plain = {*block.columns.values()}
    is_simple = all(text in plain for text in columns.values())
    return replace(block, columns=columns, is_simple=is_simple, is_relation=False)


def unique(name: str, taken: tuple[str, ...]) -> str:
    """Find a name that is not taken: orders, orders_2, …"""
    lowered = {each.lower() for each in taken}
    tries = (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in tries if each.lower() not in lowered)


def _of(qualifier: str, columns: "Mapping[str, str] | tuple[str, ...]") -> dict[str, str]:
    return {column: f"{quote_name(qualifier)}.{quote_name(column)}" for column in columns}


def _item(name: str, text: str) -> str:
    return text if text.endswith(f".{quote_name(name)}") else f"{text} AS {quote_name(name)}"
