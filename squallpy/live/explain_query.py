"""EXPLAIN of a query of a session: its compilation up to a stage."""

from squallpy.compiler import Compiler
from squallpy.explain import PLACED, Tracer, list_passes, program_stage_text, stage_text
from squallpy.logical.nodes import Query


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
