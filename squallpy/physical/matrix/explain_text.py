"""The matrices of a query as people read them: `squall explain logical`, `triggers`, `physical` and `stages`."""

from collections.abc import Sequence

from squallpy.maintain.matrix.explain_text import phases_text, report_text
from squallpy.physical.matrix.block_supersteps import Superstep, plan_blocks
from squallpy.physical.matrix.matrix_plan import MatrixPlan, MatrixProgramPlan
from squallpy.physical.matrix.view_passes import schedule_passes


def matrix_stage_text(plan: MatrixPlan, stage: str) -> str:
    """Show matrices at a stage of the query; nothing where there is nothing of them to see."""
    match stage:
        case "logical":
            return matrices_text(plan)
        case "triggers":
            return phases_of_matrices(plan)
        case "physical":
            return passes_text(plan)
        case "stages":
            return supersteps_text(plan)
    return ""


def matrices_text(plan: MatrixPlan) -> str:
    """Show matrices and programs as they were read, as far as the query needs them."""
    lines = [f"Matrix {matrix}" for matrix in plan.matrices.values()]
    for program_plan in plan.programs:
        if program_plan.program.statements:
            lines.append(f"Matrix program {program_plan.name} over {program_plan.program.ring}")
            lines += [f"  {line}" for line in str(program_plan.program).splitlines()]
    return "\n".join(lines) + "\n"


def phases_of_matrices(plan: MatrixPlan) -> str:
    """Show the phases from ANF to triggers, and costs."""
    parts = [
        f"MATRIX PROGRAM {program_plan.name}\n\n{phases_text(program_plan.compiled.maintained)}"
        f"\n-- costs, where unknown dimensions are 1,000\n{report_text(program_plan.compiled, {})}"
        for program_plan in plan.programs
        if program_plan.program.statements
    ]
    return "\n".join(parts)


def passes_text(plan: MatrixPlan) -> str:
    """Show views, the passes or supersteps of each input's trigger, and the cells that are read."""
    texts = (
        _in_blocks(program_plan, plan.parts) if plan.parts else _passes(program_plan) for program_plan in plan.programs
    )
    return "\n".join("\n".join(lines) + "\n" for lines in texts)


def _passes(program_plan: MatrixProgramPlan) -> list[str]:
    incremental = program_plan.compiled.maintained
    lines = [f"MATRICES {program_plan.name} over {program_plan.program.ring}: {', '.join(_views(program_plan))}"]
    for trigger in incremental.triggers.values():
        lines.append(f"  ON {trigger.input} += {trigger.u} * {trigger.v}")
        lines += [f"    {work}" for work in schedule_passes(trigger, incremental.matrices)]
    return [*lines, *(f"  READ {reading}" for reading in program_plan.readings)]


def _in_blocks(program_plan: MatrixProgramPlan, parts: int) -> list[str]:
    """Show supersteps; a send is an exchange of all partitions, for which the work after it waits."""
    incremental, plan = program_plan.compiled.maintained, plan_blocks(program_plan.compiled.maintained)
    views = [
        f"{name} by rows and columns" if name in plan.by_columns else f"{name} by rows" for name in _views(program_plan)
    ]
    name, ring = program_plan.name, program_plan.program.ring
    lines = [f"MATRICES {name} over {ring}, in blocks on {parts} partitions: {', '.join(views)}"]
    for name, trigger in incremental.triggers.items():
        lines.append(f"  ON {trigger.input} += {trigger.u} * {trigger.v}")
        lines += _lines(plan.triggers[name])
    lines += ["  ANEW", *_lines(plan.evaluation)]
    if plan.look[-1].work:
        vectors = ", ".join(f"{vector} ({vector.rows})" for vector in plan.probe.vectors)
        lines += [f"  LOOK at drift on random {vectors}", *_lines(plan.look)]
    return [*lines, *(f"  READ {reading}" for reading in program_plan.readings)]


def _lines(supersteps: Sequence[Superstep]) -> list[str]:
    return [f"    {line}" for superstep in supersteps for line in str(superstep).splitlines()]


def _views(program_plan: MatrixProgramPlan) -> list[str]:
    return [name.name for name in program_plan.compiled.maintained.stored]


def supersteps_text(plan: MatrixPlan) -> str:
    """Show the stages of matrices in blocks, which come before those of the query."""
    lines = []
    for program_plan in plan.programs if plan.parts else ():
        blocks = plan_blocks(program_plan.compiled.maintained)
        counts = [
            f"{len(steps)} when {name} changes"
            for name, steps in blocks.triggers.items()
            if program_plan.program.input(name)
        ]
        lines.append(
            f"MATRICES {program_plan.name} in the same job, first: {', '.join(counts)}, {len(blocks.evaluation)} anew"
        )
    if lines:
        lines.append("  a stage each, after one for the orders of the driver; the last of them is STAGE 1 as well")
    return "".join(f"{line}\n" for line in lines)
