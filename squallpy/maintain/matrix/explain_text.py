"""The phases of a matrix program as text (Fig. 5.12): what `squall explain` prints.

anf             one operation, one name          derivation     the delta of each name
factorisation   each delta as U · V              materialisation views, and what is done for them
"""

from squallpy.maintain.matrix.compile_triggers import CompiledMatrices
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import IncrementalProgram, MatrixTrigger
from squallpy.maintain.matrix.trigger_cost import Price, TriggerPricing, evaluation_price, sparse_inputs, trigger_price


def anf_text(maintained: IncrementalProgram) -> str:
    """Show the definitions with their properties; those that are not kept are in parentheses."""
    kept = {name.name for name in maintained.kept}
    lines = []
    for d in maintained.anf.definitions:
        known = ", ".join(maintained.anf.facts[d.name.name].words())
        text = str(d) if d.name.name in kept else f"({d})"
        lines.append(f"{text:<40}{d.name.rows} × {d.name.cols}{', ' if known else ''}{known}".rstrip())
    return "\n".join(lines) + "\n"


def derivation_text(trigger: MatrixTrigger) -> str:
    """Show the deltas, before they are factored."""
    return "".join(f"{statement}\n" for statement in trigger.derived.statements)


def factorisation_text(trigger: MatrixTrigger) -> str:
    """Show each delta's factors."""
    return "".join(f"{statement}\n" for statement in trigger.factored)


def trigger_text(trigger: MatrixTrigger) -> str:
    """Show ON UPDATE A BY (uA, vA): steps and updates."""
    rows = ", by rows" if trigger.by_rows else ""
    lines = [f"on {trigger.input} += {trigger.u} * {trigger.v}{rows}:"]
    lines += [f"  {step}" for step in trigger.steps]
    lines += [f"  {update}" for update in trigger.updates]
    return "\n".join(lines) + "\n"


def phases_text(maintained: IncrementalProgram) -> str:
    """Show all phases, one after the other."""
    parts = [("program in ANF", anf_text(maintained))]
    for trigger in maintained.triggers.values():
        parts += [
            (f"derivation for {trigger.input}", derivation_text(trigger)),
            ("factorisation", factorisation_text(trigger)),
            ("materialisation", trigger_text(trigger)),
        ]
    return "\n".join(f"-- {title}\n{text}" for title, text in parts)


def report_text(compiled: CompiledMatrices, sizes: Sizes) -> str:
    """Show the alternatives and their costs: iterative models, searches, triggers against evaluation."""
    lines = []
    for iteration, ways in compiled.report.iterations:
        lines.append(iteration)
        for chosen, way in zip("→" + " " * len(ways), ways, strict=False):
            costs = f"{_count_text(way.trigger)} a trigger, {_count_text(way.evaluation)} anew, {way.views} views"
            lines.append(f"  {chosen} {way.model:<12}{costs}")
    for name, found in compiled.report.searches:
        looked = f"{found.forms} forms, {found.applications} rules applied, {found.revisits} seen before"
        lines.append(f"{name}: {looked}, {_count_text(found.first_cost)} → {_count_text(found.cost)}")
    incremental = compiled.maintained
    lines += [f"{name} is kept as its cells that are not zero" for name in sparse_inputs(incremental)]
    anew = evaluation_price(incremental, sizes)
    for name, trigger in incremental.triggers.items():
        each = trigger_price(incremental, trigger, 1, sizes)
        crossing = (
            f"anew from rank {crossover(incremental, trigger, sizes)} on" if each.total <= anew.total else "always anew"
        )
        lines.append(
            f"{name} += u * v: {_count_text(each.total)} for rank 1, {_count_text(anew.total)} anew, {crossing}"
        )
        lines += [f"  rank 1: {_price_text(each)}", f"  anew:   {_price_text(anew)}"]
    return "\n".join(lines) + "\n"


def crossover(maintained: IncrementalProgram, trigger: MatrixTrigger, sizes: Sizes) -> int:
    """Find the least rank for which evaluating anew is faster."""
    anew, pricing = evaluation_price(maintained, sizes).total, TriggerPricing(maintained, trigger)

    def pays(rank: int) -> bool:
        return pricing.price(rank, sizes).total <= anew

    low, high = 1, 2
    while pays(high) and high < 1 << 30:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if pays(middle) else (low, middle)
    return high


def _price_text(price: Price) -> str:
    """Show the parts of a price."""
    cache = f", {price.near:.0%} of them in the cache" if price.near < 1 else ", in the cache"
    operations, words = _count_text(price.operations), _count_text(price.visited)
    return f"{operations} operations, {words} words visited{cache}, {price.steps} steps"


def _count_text(operations: float) -> str:
    """Show a number with a unit: 1.2e+09 → 1.2 G."""
    for unit in ("", "k", "M", "G", "T"):
        if operations < 1000:
            return f"{operations:.3g}{unit and ' ' + unit}"
        operations /= 1000
    return f"{operations:.3g} P"
