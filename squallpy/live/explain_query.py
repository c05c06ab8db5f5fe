"""EXPLAIN of a query of a session: its compilation up to a stage."""

from squallpy.base.errors import SquallError, nearest
from squallpy.compiler import Compiler
from squallpy.explain import LISTS, PLACED, STAGES, Tracer, list_passes, program_stage_text, stage_text
from squallpy.frontend.statements import Explain
from squallpy.logical.nodes import Query


def stage_of(explain: Explain) -> str:
    """Return the stage that EXPLAIN asks for, by default the triggers; SQ7004 if there is no such stage."""
    known = (*STAGES, *LISTS)
    if explain.stage and explain.stage not in known:
        hint = nearest(explain.stage.upper(), [stage.upper() for stage in known])
        raise SquallError("SQ7004", f"EXPLAIN {explain.stage.upper()} shows nothing", explain.span, hint)
    return explain.stage or "triggers"


def explain_query(compiler: Compiler, query: Query, stage: str) -> str:
    """Show a query at a stage of its compilation, among what was declared before it."""
    if stage == "passes":
        return list_passes()
    if stage == "trace":
        tracer = Tracer()
        compiler.to_program(query, observer=tracer)
        return tracer.text
    if stage not in PLACED and not (compiler.script.matrices or compiler.script.programs):
        return program_stage_text(compiler.to_program(query), stage)
    return stage_text(compiler.compile([query], 1, {}), stage)
