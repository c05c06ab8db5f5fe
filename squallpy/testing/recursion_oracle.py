"""Fixpoints from scratch, by a naive loop in DuckDB, for recursive queries that DuckDB's working table gives less of.

DuckDB's iterations read the rows of the last one alone. So a query that reads itself twice in a product, or by way of
another, or has a MIN over its whole text, is evaluated again and again over all of its rows until these stay.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count

import duckdb
from sqlglot import exp

from squallpy.base.records import dataclass
from squallpy.logical.bind.recursion import is_recursive, recursive_groups, without_operands
from squallpy.logical.bind.recursion_checks import outer_tables

_MOST = 10_000
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class FixpointFromScratch:
    """Tables with the fixpoint of some queries, by name, and what makes each: its first part, and all of it."""

    tables: dict[str, tuple[str, str]]

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the tables, empty, with the columns of the part of each query that reads none of them."""
        left = dict(self.tables)
        for _ in self.tables:
            for table, (start, _) in list(left.items()):
                if not any(_quoted(other) in start for other in left):
                    connection.execute(f"CREATE TABLE {_quoted(table)} AS SELECT * FROM ({start}) LIMIT 0")
                    del left[table]

    def compute(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Fill the tables anew."""
        for table in self.tables:
            connection.execute(f"DELETE FROM {_quoted(table)}")
        for _ in range(_MOST):
            for table, (_, whole) in self.tables.items():
                connection.execute(
                    f"CREATE OR REPLACE TABLE {_quoted(f'next {table}')} AS SELECT DISTINCT * FROM ({whole})"
                )
            changed = False
            for table in self.tables:
                old, new = _quoted(table), _quoted(f"next {table}")
                differs = (
                    f"SELECT COUNT(*) FROM ((FROM {old} EXCEPT FROM {new}) UNION ALL (FROM {new} EXCEPT FROM {old}))"
                )
                ((rows,),) = connection.execute(differs).fetchall()
                if rows:
                    changed = True
                    connection.execute(f"DELETE FROM {old}; INSERT INTO {old} FROM {new}")
            if not changed:
                return
        raise AssertionError(f"no fixpoint in {_MOST} iterations")


def replace_recursions(query: exp.Expr, to_duckdb: Callable[[exp.Expr], str]) -> Iterator[FixpointFromScratch]:
    """Replace recursive queries by tables where DuckDB gives less than their fixpoint, and yield what makes these."""
    for clause in list(query.find_all(exp.With)):
        if not clause.args.get("recursive"):
            continue
        before = list[exp.CTE]()
        for group in list(recursive_groups(clause)):
            if not is_recursive(group) or not _needs_loop(group):
                before += group
                continue
            names = {cte.alias.lower(): f"fixpoint {next(_numbers)} {cte.alias}" for cte in group}
            every = frozenset(names)
            starts = {
                cte.alias.lower(): without_operands(cte.this, every)
                or without_operands(cte.this, frozenset({cte.alias.lower()}))
                for cte in group
            }
            made = dict[str, tuple[str, str]]()
            for cte in group:
                parts = (starts[cte.alias.lower()] or cte.this, cte.this)
                columns = [c.name for c in cte.args["alias"].args.get("columns") or ()]
                texts = [_text(part, before, names, columns, to_duckdb) for part in parts]
                made[names[cte.alias.lower()]] = texts[0], texts[1]
            _rename(query, names)
            for cte in group:
                cte.pop()
            yield FixpointFromScratch(made)
        if not clause.expressions:
            clause.pop()


def _needs_loop(group: Sequence[exp.CTE]) -> bool:
    if len(group) > 1 or not isinstance(group[0].this, exp.Union):
        return True
    name = group[0].alias.lower()
    uses = [table for table in outer_tables(group[0].this) if table.name.lower() == name]
    is_set = group[0].this.args.get("distinct")  # NB: the loop knows no bags, so UNION ALL is DuckDB's to evaluate
    return len(uses) > 1 or bool(is_set and any(use.find_ancestor(exp.Exists, exp.In, exp.Subquery) for use in uses))


def _text(
    part: exp.Expr,
    before: Sequence[exp.CTE],
    names: dict[str, str],
    columns: Sequence[str],
    to_duckdb: Callable[[exp.Expr], str],
) -> str:
    copied = part.copy()
    _rename(copied, names)
    text = to_duckdb(copied)
    if before:
        clause = exp.With(expressions=[cte.copy() for cte in before], recursive=True)
        text = f"{to_duckdb(clause)} {text}"
    titles = f"({', '.join(map(_quoted, columns))})" if columns else ""
    return f"SELECT * FROM ({text}) AS made{titles}"


def _rename(query: exp.Expr, names: dict[str, str]) -> None:
    for table in list(query.find_all(exp.Table)):
        if not table.db and isinstance(table.this, exp.Identifier) and table.name.lower() in names:
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            table.replace(exp.Table(this=exp.to_identifier(names[table.name.lower()], quoted=True), alias=alias))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
