"""Fixpoint: the rows of queries that read themselves, WITH RECURSIVE.

N1(x, y) := Fixpoint(F_N1(leaf, a, b): reach(x, y) ← EDGE(x, y); reach(x, y) ← reach(x, z) ⋈ EDGE(z, y))

The source view holds all *leaves*: what the rules read that is not recursive, each under its number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import Kind
from squallpy.logical.expressions import Call, Column, Expr, columns, substitute
from squallpy.logical.recursion import Growth, RecursiveTable
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, head_text
from squallpy.program.complexity import SLICE
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class Leaf:
    """A relation that rules read and that is not recursive.

    Args:
        name: The relation, for EXPLAIN.
        slots: For each of its columns, the key of the source view that holds it.
    """

    name: str
    slots: Columns


@dataclass(frozen=True, slots=True)
class Atom:
    """An occurrence of a leaf or a recursive table in a rule, with variables in the place of its columns."""

    place: int
    is_recursive: bool
    columns: Columns


@dataclass(frozen=True, slots=True)
class Rule:
    """A product of atoms, restricted by conjuncts, that derives rows of a recursive table: `items` are its columns.

    Args:
        table: The place of the table.
        sign: −1 for derivations that are taken away, as NOT EXISTS does.
    """

    table: int
    atoms: tuple[Atom, ...]
    conjuncts: tuple[Expr, ...]
    items: tuple[Expr, ...]
    sign: int = 1

    @property
    def is_recursive(self) -> bool:
        """True if it reads a recursive table."""
        return any(atom.is_recursive for atom in self.atoms)

    def agrees(self, a: Expr, b: Expr) -> bool:
        """True if two columns, or the same expression, have the same value in all that it derives."""
        if a == b:
            return True
        if not (isinstance(a, Column) and isinstance(b, Column)):
            return False
        known, waiting = {a.id}, [a.id]
        while waiting:
            at = waiting.pop()
            others = {other for pair in self._equalities for other in pair if at in pair} - known
            known |= others
            waiting += others
        return b.id in known

    def find(self, value: Expr, among: Sequence[Expr]) -> int | None:
        """Find the first expression that agrees with a value."""
        return next((at for at, each in enumerate(among) if self.agrees(value, each)), None)

    @property
    def _equalities(self) -> list[tuple[int, int]]:
        """Pairs of columns of one type that are equal, but of doubles, whose zeros are equal and have two codes."""
        return [
            (a.id, b.id)
            for conjunct in self.conjuncts
            if isinstance(conjunct, Call) and conjunct.name in ("=", "<=>")
            for a, b in [conjunct.args]
            if isinstance(a, Column) and isinstance(b, Column) and a.type == b.type and a.type.kind is not Kind.DOUBLE
        ]


@dataclass(frozen=True, slots=True)
class Fixpoint(AuxiliaryKind):
    """The rows of recursive tables that rules derive.

    Args:
        number: The key of the source view that tells the leaf.
        most: The iteration after which it is an error that there are new rows.
        span: The place of the query, for that error.
    """

    tables: tuple[RecursiveTable, ...]
    leaves: tuple[Leaf, ...]
    rules: tuple[Rule, ...]
    number: Column
    most: int = field(compare=False)
    span: Span | None = field(default=None, compare=False)

    @property
    def owns_view(self) -> bool:
        return True

    @property
    def is_divisible(self) -> bool:
        return False

    @property
    def fan_out(self) -> float:
        return 10.0  # NB: a guess, from one along a chain to hundreds in a closure, by which placements hardly differ

    def divisions(self, keys: Columns, output: OutputSpec) -> Iterator[DividedRows]:
        count = len(self.copied_columns[0]) if self.copied_columns else 0
        choices = [tuple(range(count))] if count else []
        choices += [(at,) for at in range(count)] if count > 1 else []
        for chosen in choices:
            columns = tuple(tuple(copied[at] for at in chosen) for copied in self.copied_columns)
            fields = tuple(output.items[at][0] for at in columns[0]) if len(self.tables) == 1 else ()
            whole = DividedRows(columns, fields, keys.index(self.number))
            hashed = tuple(self._hashed_leaves(columns, keys))
            yield from [replace(whole, hashed=hashed), whole] if hashed else [whole]

    def _hashed_leaves(
        self, columns: tuple[tuple[int, ...], ...], keys: Columns
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield leaves whose rows each have to do with one value of some columns, with the keys that hold these."""
        for place, leaf in enumerate(self.leaves):
            uses = ((rule, atom) for rule in self.rules for atom in rule.atoms if not atom.is_recursive)
            found = {
                tuple(self._slots(leaf, rule, atom, columns[rule.table])) for rule, atom in uses if atom.place == place
            }
            if len(found) == 1 and len(slots := found.pop()) == len(columns[0]):
                yield place, tuple(keys.index(slot) for slot in slots)

    def _slots(self, leaf: Leaf, rule: Rule, atom: Atom, positions: tuple[int, ...]) -> Iterator[Column]:
        """Yield the slots of a leaf that hold what a rule derives at some positions, as far as there are any."""
        fields = self.columns_of(rule.table)
        for position in positions:
            at = rule.find(rule.items[position], atom.columns)
            if at is not None and _hash_alike(leaf.slots[at], fields[position]):
                yield leaf.slots[at]

    @property
    def along(self) -> Columns:
        return (self.number, *(slot for leaf in self.leaves for slot in leaf.slots))

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...] | None:
        return None

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        return GroupIndex()

    def cost(self, keys: Columns, output: OutputSpec) -> str:
        return SLICE

    def columns_of(self, table: int) -> Columns:
        """Return a column for each field of a table."""
        fields = self.tables[table].relation.fields
        return tuple(Column(-1 - at, f.name, f.type, f.nullable) for at, f in enumerate(fields))

    @property
    def copied_columns(self) -> tuple[tuple[int, ...], ...]:
        """Positions, in each table, of columns that each rule copies from its recursive atoms, which agree there.

        Rows of different values there never meet, whatever else rules do with them. Empty if there are none.

        even(x, y) ← odd(x, z) ⋈ EDGE(z, y); odd(x, y) ← even(x, z) ⋈ EDGE(z, y)      →      ((0,), (0,))
        """
        steps = [(rule, atom) for rule in self.rules for atom in rule.atoms if atom.is_recursive]
        starts = range(len(self.tables[0].relation.fields)) if steps else ()
        found = [places for start in starts if (places := self._follow_copies(start, steps))]
        return tuple(zip(*found, strict=True))

    @property
    def why_whole(self) -> str:
        """The reason why partitions cannot divide its rows; empty if they can."""
        if self.copied_columns:
            return ""
        is_twice = any(sum(atom.is_recursive for atom in rule.atoms) > 1 for rule in self.rules)
        return "a rule joins any two of its rows" if is_twice else "no column is copied by all rules"

    def _follow_copies(self, start: int, steps: Sequence[tuple[Rule, Atom]]) -> tuple[int, ...] | None:
        """Find the column of each table that has the values of one of the first table; None if some rule has others."""
        places = {0: start}
        for _ in self.tables:
            for rule, atom in steps:
                if rule.table in places and atom.place not in places:
                    at, other = rule.find(rule.items[places[rule.table]], atom.columns), atom.place
                elif atom.place in places and rule.table not in places:
                    at, other = rule.find(atom.columns[places[atom.place]], rule.items), rule.table
                else:
                    continue
                places |= {} if at is None else {other: at}
        is_copied = len(places) == len(self.tables) and all(
            rule.agrees(rule.items[places[rule.table]], atom.columns[places[atom.place]]) for rule, atom in steps
        )
        if not is_copied or any(places[at] == table.value for at, table in enumerate(self.tables)):
            return None
        columns = [self.columns_of(at)[place] for at, place in sorted(places.items())]
        is_alike = all(_hash_alike(columns[0], column) for column in columns)
        return tuple(places[at] for at in range(len(self.tables))) if is_alike else None

    @property
    def stable_columns(self) -> tuple[int, ...]:
        """Positions of columns that each recursive rule copies from its one recursive atom and does not read otherwise.

        Rows of different values there never meet: a fixpoint of each. Empty unless one table grows by UNION by rules
        without subtraction, and has other columns as well.

        reach(x, y) ← reach(x, z) ⋈ EDGE(z, y)      →      (0,)
        """
        if len(self.tables) > 1 or self.tables[0].growth is not Growth.UNION or any(r.sign < 0 for r in self.rules):
            return ()
        stable, is_recursive = set(range(len(self.tables[0].relation.fields))), False
        width = len(stable)
        for rule in self.rules:
            atoms = [atom for atom in rule.atoms if atom.is_recursive]
            if len(atoms) > 1:
                return ()
            for atom in atoms:
                is_recursive = True
                reads = [c.id for expr in (*rule.conjuncts, *rule.items) for c in columns(expr)]
                stable &= {
                    at
                    for at, (column, item) in enumerate(zip(atom.columns, rule.items, strict=True))
                    if item == column and reads.count(column.id) == 1
                }
        return tuple(sorted(stable)) if is_recursive and len(stable) < width else ()

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        rules = "; ".join(dict.fromkeys(self._rule_text(rule) for rule in self.rules))
        listed = Names(source.variables).list(source.variables)
        table = self.tables[0].relation
        each = ", ".join(table.fields[at].name for at in self.stable_columns)
        return f"{head_text(name, output)} := Fixpoint({source.name}({listed}){each and f' for each {each}'}: {rules})"

    def delta_text(self, name: str, source: Ref) -> str:
        return f"Δ{name} := differences by iteration of Fixpoint({source.name} + Δ{source.name})"

    def origin_text(self, source: str) -> str:
        return f"the fixpoint over {source}"

    def _rule_text(self, rule: Rule) -> str:
        """Write a rule with one variable for columns that are equal: reach(x, y) ← reach(x, z) ⋈ EDGE(z, y)"""
        same, others = dict[int, Expr](), list[Expr]()
        for conjunct in rule.conjuncts:
            match conjunct:
                case Call("=", (Column() as a, Column() as b)) if b.id not in same and a.id not in same:
                    same[max(a, b, key=lambda c: c.id).id] = min(a, b, key=lambda c: c.id)
                case _:
                    others.append(conjunct)
        variables = [[substitute(c, same) for c in atom.columns] for atom in rule.atoms]
        names = Names([v for each in variables for v in each if isinstance(v, Column)])
        parts = [
            f"{self._atom_name(atom)}({', '.join(map(names.expr, each))})"
            for atom, each in zip(rule.atoms, variables, strict=True)
        ]
        parts += [f"({names.expr(substitute(each, same))})" for each in others]
        table = self.tables[rule.table]
        items = [names.expr(substitute(item, same)) for item in rule.items]
        if table.growth.is_extreme:
            items[table.value] = f"{table.growth.name} {items[table.value]}"
        arrow = "←" if rule.sign > 0 else "← −"
        return f"{table.relation.name}({', '.join(items)}) {arrow} {' ⋈ '.join(parts)}"

    def _atom_name(self, atom: Atom) -> str:
        return self.tables[atom.place].relation.name if atom.is_recursive else self.leaves[atom.place].name


def _hash_alike(a: Column, b: Column) -> bool:
    """True if equal values of two columns go to the same partition."""
    return a.type == b.type or (a.type.is_integer and b.type.is_integer)
