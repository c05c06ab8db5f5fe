"""The matrices of a query as people read them: `squall explain logical`, `triggers` and `physical`."""

from squallpy.maintain.matrix.show import phases_text, report_text
from squallpy.physical.matrices import KeptProgram, MatrixPlan
from squallpy.physical.passes import passes


def matrices_text(plan: MatrixPlan) -> str:
    """Matrices and programs as they were read, as far as the query needs them."""
    lines = [f"Matrix {matrix}" for matrix in plan.matrices.values()]
    for kept in plan.programs:
        if kept.program.statements:
            lines.append(f"Matrix program {kept.name} over {kept.program.ring}")
            lines += [f"  {line}" for line in str(kept.program).splitlines()]
    return "\n".join(lines) + "\n"


def phases_of_matrices(plan: MatrixPlan) -> str:
    """From ANF to triggers, and what each costs."""
    parts = [
        f"MATRIX PROGRAM {kept.name}\n\n{phases_text(kept.compiled.maintained)}"
        f"\n-- costs, where unknown dimensions are 1,000\n{report_text(kept.compiled, {})}"
        for kept in plan.programs
        if kept.program.statements
    ]
    return "\n".join(parts)


def passes_text(plan: MatrixPlan) -> str:
    """Views, what each input's trigger does to them in passes, and which cells are read."""
    return "\n".join("\n".join(_passes(kept)) + "\n" for kept in plan.programs)


def _passes(kept: KeptProgram) -> list[str]:
    made = kept.compiled.maintained
    views = [*(i.name.name for i in kept.program.inputs), *(name.name for name in made.kept)]
    lines = [f"MATRICES {kept.name} over {kept.program.ring}: {', '.join(views)}"]
    for trigger in made.triggers.values():
        lines.append(f"  ON {trigger.input} += {trigger.u} * {trigger.v}")
        lines += [f"    {work}" for work in passes(trigger, made.matrices)]
    return [*lines, *(f"  READ {reading}" for reading in kept.readings)]
