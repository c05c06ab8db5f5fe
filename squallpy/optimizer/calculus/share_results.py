"""Results that are equal up to the names of their variables, as one view that is printed in several ways."""

from dataclasses import replace

from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.output_spec import OutputSpec
from squallpy.program.trigger_program import Lowered, result_name
from squallpy.program.view_registry import ViewRegistry


def share_results(lowered: Lowered, context: PassContext) -> Lowered:
    """Let outputs of equal views print one of them, which has the lanes of all.

    Q1(k) := Sum_[k](R(k, x) ⋈ ⟨1, x⟩);  Q2(j) := Sum_[j](R(j) ⋈ ⟨1⟩) HAVING j > 3   →   Q1, also printed HAVING k > 3
    """
    if len(lowered.result_of) == 1:
        return lowered
    registry = ViewRegistry("", ids=context.ids)
    own = [lowered.views[number] for number in lowered.result_of]
    requests = [registry.request_view(view) for view in own]
    names = registry.names
    if len(names) == len(own):
        return lowered
    result_of = tuple(names.index(name) for name, _, _ in requests)
    made = (view if result_of.count(n) > 1 else own[result_of.index(n)] for n, view in enumerate(registry.views))
    views = tuple(replace(view, name=result_name(n, len(names))) for n, view in enumerate(made, 1))
    outputs = list[OutputSpec]()
    for output, number, (_, keys, lanes) in zip(lowered.outputs, result_of, requests, strict=True):
        if result_of.count(number) > 1:
            renamed = {v.id: key for v, key in zip(keys, views[number].keys, strict=True)}
            output = output.with_lanes(lanes).with_columns(renamed)
        outputs.append(output)
    return replace(lowered, views=views, outputs=tuple(outputs), result_of=result_of)
