"""Identities of compiled queries, by which a checkpoint knows what its state is of.

fingerprint(compiled, …)   →   the query and what it reads; its plan, which may become another if the state moves
"""

import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from squallpy.base.json_codec import to_json
from squallpy.base.records import dataclass
from squallpy.base.recursion import run_deep
from squallpy.base.settings import Settings
from squallpy.catalog.format_options import DEAD_LETTER, INTERVALS, passed_options
from squallpy.catalog.relation import Field, Relation
from squallpy.compiler import CompiledQuery
from squallpy.logical.query_identity import identity_text
from squallpy.physical.explain_text import plan_text
from squallpy.physical.matrix.matrix_plan import under_matrices
from squallpy.program.explain_text import program_text

if TYPE_CHECKING:  # NB: the runtime is imported by runs only, so that EXPLAIN starts at once
    from squallpy.runtime.checkpoint.checkpoint import CheckpointIdentity


@dataclass(frozen=True, slots=True)
class Setup:
    """The makings of a plan, besides its queries and the sizes of its relations.

    Args:
        late: Rows that came after their window had passed are reported.
        final: The final result is wanted.
        apart: The places of queries whose changes go to sinks, and which partitions may print.
        bounded: Relations will have no more rows than these.
        rows: Rows of relations that were read when the plan was chosen by them.
        present: Relations of which these are what there is at a time.
    """

    settings: Settings
    partitions: int
    late: bool
    final: bool
    apart: tuple[int, ...] = ()
    bounded: bool = False
    rows: dict[str, int] = field(default_factory=dict)
    present: tuple[str, ...] = ()


def fingerprint(
    compiled: CompiledQuery, order: str, sizes: dict[str, int], setup: Setup | None = None
) -> "CheckpointIdentity":
    """Compute the identity of a checkpoint from query and replay; if only the plan differs, its state moves."""
    from squallpy.runtime.checkpoint.checkpoint import CheckpointIdentity

    read = columns_read(compiled)
    relations = [(r.name, _read_of(r, read), r.format, _how_read(r)) for r in compiled.relations]
    queries = [(identity_text(query.plan), query.names) for query in compiled.queries]
    query = repr((queries, relations, order))
    if matrices := compiled.plan.matrices:
        from squallpy.physical.matrix.explain_text import matrices_text

        query += matrices_text(matrices)
    program = run_deep(lambda: _program_text(compiled))
    plan = _plan_identity(compiled, program)
    return CheckpointIdentity(_hash(query), plan, sizes, _hash(program), to_json(setup) or {})


def plan_identity(compiled: CompiledQuery) -> str:
    """Identify the plan of a query, which the state of each partition depends on."""
    return _plan_identity(compiled, run_deep(lambda: _program_text(compiled)))


def _plan_identity(compiled: CompiledQuery, program: str) -> str:
    plan, matrices = compiled.plan, compiled.plan.matrices
    parts, placed = matrices.parts if matrices else 0, run_deep(lambda: plan_text(plan, with_components=False))
    return _hash(f"{plan.partitions} {parts} {program} {placed}")


def _program_text(compiled: CompiledQuery) -> str:
    """Describe what the plan of a query places."""
    text, matrices = program_text(compiled.program), compiled.plan.matrices
    return f"{text} {matrices.by_rows} {' '.join(map(str, matrices.readings))}" if matrices else text


def _read_of(relation: Relation, read: Mapping[str, tuple[str, ...]]) -> list[Field]:
    """List the fields on which a checkpoint depends: those read, or all if they are found by position."""
    if relation.is_by_place:
        return list(relation.fields)
    names = (*read.get(relation.name, ()), *read.get(under_matrices(relation.name), ()))
    return sorted((f for f in relation.fields if f.name in names), key=lambda f: f.name)


def _how_read(relation: Relation) -> list[tuple[str, str]]:
    """List the options that say how rows are read, and not which: a checkpoint compares these."""
    where = (
        "path",
        "expected_rows",
        "maxfilespertrigger",
        "maxbytespertrigger",
        "dead_letter",
        "host",
        "port",
        "endpoint",
        "token_env",
        *INTERVALS,
        *passed_options(relation.format, relation.options),
    )
    options = {name: value for name, value in relation.options.items() if name not in where}
    return sorted((name, "skip" if value == DEAD_LETTER else value) for name, value in options.items())


def columns_read(compiled: CompiledQuery) -> dict[str, tuple[str, ...]]:
    """List the columns of each source that a query reads, by the names of statistics."""
    from squallpy.runtime.ingest.explode import columns_of

    found: dict[str, dict[str, None]] = {}
    for feed in compiled.plan.sources:
        if not feed.relation.is_computed:
            source = feed.relation.source
            keys = source.primary_key if source.is_keyed else ()
            columns = (*keys, *columns_of(feed.relation, feed.fields))
            found.setdefault(source.name, {}).update(dict.fromkeys(columns))
    for matrix in compiled.plan.matrices.matrices.values() if compiled.plan.matrices else ():
        found.setdefault(under_matrices(matrix.relation), {}).update(dict.fromkeys(matrix.columns))
    for relation in compiled.plan.matrices.keyed if compiled.plan.matrices else ():
        found[under_matrices(relation.name)].update(dict.fromkeys(relation.primary_key))
    return {name: tuple(sorted(columns)) for name, columns in found.items()}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
