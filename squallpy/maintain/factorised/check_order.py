"""Check of a variable order against the query that it is for."""

from squallpy.base.errors import SquallError, nearest
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.variable_order import BROKEN, Schema, VariableOrder

Columns = tuple[Column | None, ...]


def check_order(order: VariableOrder, graph: JoinGraph) -> Columns:
    """Find the query's variable for each of the order's, None for a column that the query does not read.

    Names are compared as SQL compares them, without case. Raises SquallError for an order that is none for the query:
    SQ2001 for an unknown relation, SQ2002 and SQ2003 for ambiguous and unknown variables, SQ2007 for a variable with
    two names, SQ2013 for what is missing.
    """
    names = graph.names()
    columns = _columns(order, graph, names)
    leaves = {leaf.name.lower(): leaf for leaf in graph.leaves}
    for relation in order.relations:
        if relation.name.lower() not in leaves:
            hint = nearest(relation.name, (leaf.name for leaf in graph.leaves))
            raise SquallError("SQ2001", f'the query does not join "{relation.name}"', relation.span, hint)
        _check_schema(order, relation, leaves.pop(relation.name.lower()), columns, names)
    if leaves:
        missing = next(iter(leaves.values())).name
        raise SquallError(
            BROKEN, f'the variable order has no relation "{missing}"', hint="list every relation that the query joins"
        )
    return columns


def _columns(order: VariableOrder, graph: JoinGraph, names: dict[Column, str]) -> Columns:
    meanings, columns, seen = graph.meanings(), list[Column | None](), dict[Column, str]()
    for v in order.variables:
        if (found := meanings.get(v.name.lower())) is None:
            raise SquallError("SQ2003", f'unknown variable "{v.name}"', v.span, nearest(v.name, names.values()))
        if len(found) > 1:
            hint = f"write {' or '.join(sorted(names[each] for each in found))}"
            raise SquallError("SQ2002", f'ambiguous variable "{v.name}"', v.span, hint)
        columns.append(next(iter(found), None))
        for column in found:
            if (other := seen.setdefault(column, v.name)) != v.name:
                told = f'"{other}" and "{v.name}" are one variable'
                raise SquallError("SQ2007", told, v.span, "the join makes them equal")
    for column in graph.variables:
        if column not in seen:
            raise SquallError(
                BROKEN, f'the variable order has no variable "{names[column]}"', hint="list every column that it reads"
            )
    return tuple(columns)


def _check_schema(
    order: VariableOrder, relation: Schema, leaf: Leaf, columns: Columns, names: dict[Column, str]
) -> None:
    """Refuse a relation that has other variables in the order than in the query."""
    unread = {f"{prefix}{name}".lower() for name in leaf.unread for prefix in ("", f"{leaf.name}.")}
    for id in relation.variables:
        v, column = order.variables[id], columns[id]
        known = column in leaf.variables if column else v.name.lower() in unread
        if not known:
            told = f'"{v.name}" is no column of "{leaf.name}"'
            raise SquallError("SQ2003", told, relation.span, nearest(v.name, map(names.__getitem__, leaf.variables)))
    given = {columns[id] for id in relation.variables}
    for column in leaf.variables:
        if column not in given:
            told = f'"{names[column]}" is missing in the columns of "{leaf.name}"'
            raise SquallError(BROKEN, told, relation.span)
