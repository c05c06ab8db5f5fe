"""EXPLAIN of a query of a session: its compilation up to a stage."""

from squallpy.base.errors import SquallError, nearest
from squallpy.compiler import Compiler
from squallpy.explain import LISTS, PLACED, STAGES, Tracer, list_passes, program_stage_text, stage_text, why_text
from squallpy.frontend.statements import Explain
from squallpy.logical.nodes import Query
from squallpy.physical.explain_text import triggers_text


def stage_of(explain: Explain) -> str:
    """Return the stage that EXPLAIN asks for, by default the triggers; SQ7004 if there is no such stage."""
    known = (*STAGES, *LISTS)
    if explain.stage and explain.stage not in known:
        hint = nearest(explain.stage.upper(), [stage.upper() for stage in known])
        raise SquallError("SQ7004", f"EXPLAIN {explain.stage.upper()} shows nothing", explain.span, hint)
    return explain.stage or "triggers"


def explain_query(compiler: Compiler, query: Query, stage: str) -> str:
    """Show a query at a stage of its compilation, among what was declared before it.

    The triggers are those of all queries of the compiler's script, as far as this one needs them.
    """
    if stage == "passes":
        return list_passes()
    if stage == "trace":
        tracer = Tracer()
        compiler.to_program(query, observer=tracer)
        return tracer.text
    if stage == "why":
        return why_text(compiler, [query], 1, {}, bounded=False)
    if stage not in PLACED and not (compiler.script.matrices or compiler.script.programs):
        if stage != "triggers":
            return program_stage_text(compiler.to_program(query), stage)
        queries = compiler.script.queries
        compiled = compiler.to_program(*queries)
        only = compiled.results[queries.index(query)] if len(queries) > 1 else None
        return triggers_text(compiled.program, compiled.titles, only)
    return stage_text(compiler.compile([query], 1, {}), stage)
