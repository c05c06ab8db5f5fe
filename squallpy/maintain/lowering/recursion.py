"""Recursions → rules over leaves: what is not recursive is a view, what is, a product of tables and leaves.

reach(x, y) ← edge(x, y)                       leaf 0: edge(x, y)
reach(x, y) ← reach(x, z) ⋈ edge(z, y)
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import field
from functools import reduce
from typing import cast

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import INT
from squallpy.frontend.unsupported import RECURSION
from squallpy.logical.expressions import Column, Expr, Literal, column_of, columns, conjunction, substitute
from squallpy.logical.join_matches import distinct_matches
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SemiJoin,
    Sort,
    Union,
    inner_join,
    with_inputs,
)
from squallpy.logical.recursion import Growth, Recursion, reads_working_table
from squallpy.maintain.lowering.block import SpjBlock
from squallpy.program.auxiliary.fixpoint import Atom, Rule

Expand = Callable[[Node], list[SpjBlock]]


@dataclass(slots=True)
class Rules:
    """The rules of a recursion, and the plans of its leaves, each with its name and columns."""

    rules: list[Rule] = field(default_factory=list)
    leaves: list[tuple[str, Node]] = field(default_factory=list)


def derive_rules(node: Recursion, expand: Expand, ids: Iterator[int]) -> Rules:
    """Lower the queries of a recursion to rules; SQ3001 for operators that cannot be followed."""
    names = [table.relation.name for table in node.tables]
    known, found = dict[Hashable, int](), Rules()
    for number, (child, table) in enumerate(zip(node.children, node.tables, strict=True)):
        plan = _products(child, frozenset(names), table.growth, ids)
        if plan is None:
            raise SquallError(
                "SQ3001", f"{RECURSION['operator'].name} is not supported yet", node.span, RECURSION["operator"].hint
            )
        for block in expand(plan):
            if not block.empty:
                items = tuple(block.inline(column) for column in plan.output)
                found.rules.append(_rule(number, block, items, names, known, found.leaves, ids))
    return found


def _products(plan: Node, names: frozenset[str], growth: Growth, ids: Iterator[int]) -> Node | None:
    """Rewrite a plan over recursive tables to products of these and of leaves; None if that is impossible."""
    if not reads_working_table(plan, names):
        return plan

    def inner(child: Node) -> Node | None:
        return _products(child, names, growth, ids)

    match plan:
        case Aggregate(child, keys, ()) if growth is not Growth.UNION_ALL and keys:
            found = inner(child)
            return found and Project(found, keys)
        case SemiJoin(left, right, on) if growth is not Growth.UNION_ALL:
            ours, theirs = inner(left), inner(right)
            return ours and theirs and Project(inner_join(ours, theirs, on), tuple((c, c) for c in left.output))
        case ConditionalJoin(left, right, on) if not reads_working_table(right, names):
            if reads_working_table(distinct_matches(left, right, on, ids)[0], names):
                return None
            ours = inner(left)
            return ours and with_inputs(plan, (ours, right))
        case Sort(child):
            return inner(child)
        case Scan() | Filter() | Project() | Join() | Union():
            below = [inner(child) for child in plan.inputs]
            return with_inputs(plan, tuple(filter(None, below))) if all(below) else None
    return None


def _rule(
    table: int,
    block: SpjBlock,
    items: tuple[Expr, ...],
    names: list[str],
    known: dict[Hashable, int],
    leaves: list[tuple[str, Node]],
    ids: Iterator[int],
) -> Rule:
    """Make the rule of a block; its scans of what is not recursive become leaves, equal ones the same leaf."""
    recursive = [scan for scan in block.scans if scan.relation.name in names and _is_working(scan)]
    others = [scan for scan in block.scans if scan not in recursive]
    if not recursive and len(others) != 1:
        made = tuple((column_of(item, next(ids)), item) for item in items)
        joined: Node = reduce(lambda left, right: Join(left, right), others[1:], cast(Node, others[0]))
        plan = Project(_restricted(joined, block.conjuncts), made)
        leaves.append(("⋈".join(scan.relation.name.upper() for scan in others), plan))
        columns_made = tuple(column for column, _ in made)
        return Rule(table, (Atom(len(leaves) - 1, False, columns_made),), (), columns_made, block.sign)
    left, atoms = list(block.conjuncts), list[Atom]()
    own: dict[int, list[Expr]] = {}
    for scan in others:
        own[id(scan)] = [c for c in left if columns(c) and {column.id for column in columns(c)} <= scan.ids]
        left = [c for c in left if c not in own[id(scan)]]
    read = {column for expr in (*left, *items) for column in columns(expr)}
    for scan in block.scans:
        if scan in recursive:
            atoms.append(Atom(names.index(scan.relation.name), True, scan.columns))
            continue
        used = tuple(column for column in scan.columns if column in read)
        places: dict[int, Expr] = {
            column.id: Column(at, "", column.type, column.nullable) for at, column in enumerate(scan.columns)
        }
        key = (
            scan.relation.name,
            tuple(scan.columns.index(c) for c in used),
            tuple(sorted(repr(substitute(c, places)) for c in own[id(scan)])),
        )
        if key not in known:
            known[key] = len(leaves)
            plan = Project(_restricted(scan, own[id(scan)]), tuple((column_of(c, next(ids)), c) for c in used))
            leaves.append((scan.relation.name.upper(), plan))
        atoms.append(Atom(known[key], False, used))
    return Rule(table, tuple(atoms), tuple(left), items, block.sign)


def _is_working(scan: Scan) -> bool:
    return reads_working_table(scan, frozenset([scan.relation.name]))


def _restricted(plan: Node, conjuncts: list[Expr]) -> Node:
    return Filter(plan, conjunction(conjuncts)) if conjuncts else plan


def union_of_leaves(leaves: list[tuple[str, Node]], ids: Iterator[int]) -> tuple[Union, list[tuple[Column, ...]]]:
    """Join leaves one after the other to one plan: the number of the leaf, and a column for each of its own.

    Leaves share columns of one type, and have NULL in those that they lack. Returned with the columns of each leaf.
    """
    number, slots = Column(next(ids), "leaf", INT, False), list[Column]()
    slots_of = list[tuple[Column, ...]]()
    for _, plan in leaves:
        free, mine = list(slots), list[Column]()
        for column in plan.output:
            slot = next((each for each in free if each.type == column.type), None)
            if slot is None:
                slot = Column(next(ids), column.name, column.type)
                slots.append(slot)
            else:
                free.remove(slot)
            mine.append(slot)
        slots_of.append(tuple(mine))
    children = list[Node]()
    for at, ((_, plan), own) in enumerate(zip(leaves, slots_of, strict=True)):
        given: dict[int, Expr] = {slot.id: c for slot, c in zip(own, plan.output, strict=True)}
        values = [Literal(at, INT), *(given.get(slot.id, Literal(None, slot.type)) for slot in slots)]
        made = (
            (Column(next(ids), c.name, c.type, c.nullable), v) for c, v in zip((number, *slots), values, strict=True)
        )
        children.append(Project(plan, tuple(made)))
    return Union(tuple(children), (number, *slots)), slots_of
