"""Variable orders: rooted forests of variables, by which a join is evaluated and its variables are marginalised.

The variables of each relation lie on one path from a root. As text, a line for each variable and each relation:

    A                4 2                     variables, relations
    ├─ B ─ R(A, B)   0 A int -1 {} 0         id name type parent {keys} cache
    └─ C             1 B int 0 {0} 0
       └─ D ─ S      2 C double 0 {0} 0
                     3 D int 2 {0,2} 0
                     R 1 A,B                 relation, its lowest variable, columns
                     S 3 A,C,D

Source: `fivm-on-flink` §2.3.2; the text is the F-IVM prototype's.
"""

import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise

from squallpy.base.errors import Span, SquallError
from squallpy.base.records import dataclass

NO_PARENT = -1
BROKEN = "SQ2013"
"""The code of an order that breaks a rule of variable orders, or is none for its query."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A node of the forest; `parent` is an id, a position among the order's variables."""

    name: str
    type: str
    parent: int
    is_cached: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Schema:
    """A relation with the ids of its variables."""

    name: str
    variables: tuple[int, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VariableOrder:
    """A forest of variables with the relations over them.

    Raises SquallError where it is no forest (SQ2003 for a parent that is none, SQ2013 for a cycle), a name is there
    twice (SQ2007), or the variables of a relation are not on one path (SQ2013).
    """

    variables: tuple[Variable, ...]
    relations: tuple[Schema, ...]
    preorder: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """The ids, each parent before its children."""
    _ranks: tuple[int, ...] = field(init=False, compare=False, repr=False)
    _ends: tuple[int, ...] = field(init=False, compare=False, repr=False)  # ranks behind the subtrees

    def __post_init__(self) -> None:
        _check_unique(self.variables)
        _check_unique(self.relations)
        children: list[list[int]] = [[] for _ in (*self.variables, NO_PARENT)]
        for id, v in enumerate(self.variables):
            if not NO_PARENT <= v.parent < len(self.variables):
                told = f'there is no variable {v.parent}, the parent of "{v.name}"'
                raise SquallError("SQ2003", told, v.span, f"a root has the parent {NO_PARENT}")
            children[v.parent].append(id)
        preorder, waiting = list[int](), children[NO_PARENT][::-1]
        while waiting:
            preorder.append(waiting.pop())
            waiting += reversed(children[preorder[-1]])
        if len(preorder) < len(self.variables):
            raise self._cycle(set(preorder))
        ranks, ends = [0] * len(preorder), [0] * len(preorder)
        for rank, id in reversed([*enumerate(preorder)]):
            ranks[id], ends[id] = rank, max([rank + 1, *(ends[child] for child in children[id])])
        object.__setattr__(self, "preorder", tuple(preorder))
        object.__setattr__(self, "_ranks", tuple(ranks))
        object.__setattr__(self, "_ends", tuple(ends))
        for relation in self.relations:
            self._check_path(relation)

    def _cycle(self, reached: set[int]) -> SquallError:
        """Describe a cycle among the variables that no root reaches."""
        id, seen = next(i for i in range(len(self.variables)) if i not in reached), list[int]()
        while id not in seen:
            seen.append(id)
            id = self.variables[id].parent
        names = " → ".join(self.variables[i].name for i in (*seen[seen.index(id) :], id))
        return SquallError(
            BROKEN, f"parents make a cycle: {names}", self.variables[id].span, "a root has the parent -1"
        )

    def _check_path(self, relation: Schema) -> None:
        path = sorted(relation.variables, key=self.rank)
        for upper, lower in pairwise(path):
            if not self.is_ancestor(upper, lower):
                names = [f'"{self.variables[id].name}"' for id in (upper, lower)]
                roots = [self.variables[self._root(id)].name for id in (upper, lower)]
                told = f'{" and ".join(names)} of "{relation.name}" are not on one path from the root'
                if roots[0] != roots[1]:
                    told += f': there are two roots, "{roots[0]}" and "{roots[1]}"'
                raise SquallError(BROKEN, told, relation.span, "all variables of a relation are below each other")

    def _root(self, id: int) -> int:
        while (parent := self.variables[id].parent) != NO_PARENT:
            id = parent
        return id

    def rank(self, id: int) -> int:
        """Return the position of a variable in the preorder."""
        return self._ranks[id]

    def is_ancestor(self, upper: int, lower: int) -> bool:
        """True if the first is above the second variable."""
        return self._ranks[upper] < self._ranks[lower] < self._ends[upper]

    def lowest(self, relation: Schema) -> int:
        """Find the variable below which a relation hangs, -1 if it has none."""
        return max(relation.variables, key=self.rank, default=NO_PARENT)

    def dep(self) -> tuple[tuple[int, ...], ...]:
        """Find for each variable its keys: the ancestors that share a relation with it or with a variable below it."""
        needed: list[set[int]] = [set() for _ in (*self.variables, NO_PARENT)]
        for relation in self.relations:
            needed[self.lowest(relation)].update(relation.variables)
        for id in reversed(self.preorder):
            needed[id].discard(id)
            needed[self.variables[id].parent] |= needed[id]
        return tuple(tuple(sorted(keys, key=self.rank)) for keys in needed[:-1])

    def __str__(self) -> str:
        lines = [f"{len(self.variables)} {len(self.relations)}"]
        for id, (v, keys) in enumerate(zip(self.variables, self.dep(), strict=True)):
            among = ",".join(map(str, keys))
            lines.append(f"{id} {_quoted(v.name)} {v.type} {v.parent} {{{among}}} {int(v.is_cached)}")
        for relation in self.relations:
            names = ",".join(_quoted(self.variables[id].name) for id in relation.variables)
            lines.append(f"{_quoted(relation.name)} {self.lowest(relation)} {names}".rstrip())
        return "\n".join(lines)


def _check_unique(named: Sequence[Variable] | Sequence[Schema]) -> None:
    seen = set[str]()
    for each in named:
        if each.name.lower() in seen:
            kind = "variable" if isinstance(each, Variable) else "relation"
            raise SquallError("SQ2007", f'{kind} "{each.name}" is there twice', each.span)
        seen.add(each.name.lower())


def _quoted(name: str) -> str:
    """Quote a name with characters that the text of orders has for itself."""
    plain = re.fullmatch(r"[^\s,{}`/-]+", name)
    return name if plain else "`" + name.replace("`", "``") + "`"
