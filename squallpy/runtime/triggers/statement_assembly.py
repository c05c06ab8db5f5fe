"""Assembly of statements: their steps as words of kernel programs (`kernels/statement_steps.py`).

probe M_C(ck) → where ck <> s → let x = f(ck)    →    a program of two steps, then a step that Python takes
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from squallpy.base.keys import NULL, is_own_key, is_plain, null_of
from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, LaneRing, Payload, Ring
from squallpy.base.types import DOUBLE, Kind, Type
from squallpy.logical.expressions import COMPARISONS, MIRRORED, Call, Column, Expr, Literal, are_stored_alike, conjuncts
from squallpy.physical.plan import AuxiliaryPlan, FilterStep, Let, Lookup, StatementStep, Update
from squallpy.program.calculus import Lane, lifted
from squallpy.program.views import RowFields
from squallpy.runtime.kernels import statement_steps
from squallpy.runtime.kernels.cofactor_blocks import BLOCK, LIFTED, SCALAR, kind_of_factor
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_products import kind_of

_LOOKUPS = {"probe": statement_steps.PROBE, "slice": statement_steps.SLICE, "scan": statement_steps.SCAN}


@dataclass(frozen=True, slots=True)
class StepProgram:
    """Consecutive steps in one program, with the positions in it of pools' frames and of noted payloads.

    Auxiliary relations note the payloads of groups before the batch.
    """

    program: Words
    frames: tuple[tuple[int, str], ...]
    noted: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Assembly:
    """A statement made ready: programs and steps between them, the register of each variable, and the outcome's words.
    Sources of payload factors are the delta, each lookup, and each factor that is computed.

    Args:
        computed: Those factors, with the rings of their lanes.
    """

    parts: tuple[StepProgram | StatementStep, ...]
    registers: Mapping[int, int]
    sources: int
    computed: tuple[tuple[Expr, LaneRing], ...]
    outcome: Words

    @property
    def width(self) -> int:
        """Number of registers."""
        return len(set(self.registers.values()))


def assemble(
    update: Update, payloads: Mapping[str, Payload], auxiliary: Mapping[str, AuxiliaryPlan] = MappingProxyType({})
) -> Assembly:
    """Assemble an update."""
    registers = {v.id: i for i, v in enumerate(update.variables)}
    parts: list[StepProgram | StatementStep] = []
    words: list[int] = []
    frames: list[tuple[int, str]] = []
    noted: list[tuple[int, str]] = []
    source = 0

    def flush() -> None:
        if words:
            parts.append(StepProgram(np.array(words, np.int64), tuple(frames), tuple(noted)))
            words.clear()
            frames.clear()
            noted.clear()

    for step in update.steps:
        known = sorted(set(registers.values()))
        if isinstance(step, Lookup):
            source += 1
            for _, v in (*step.binds, *(step.row.fields if step.row else ())):
                registers.setdefault(v.id, len(set(registers.values())))
        elif isinstance(step, Let):
            same = _same(step)
            registers[step.variable.id] = registers[same.id] if same else len(known)
            if same:
                continue
        code = _encode(step, registers, known, source, auxiliary)
        if code is None:
            flush()
            parts.append(step)
            continue
        if isinstance(step, Lookup):
            frames.append((len(words) + statement_steps.FRAME, step.source))
            if step.row and step.row.is_before:
                noted.append((len(words) + statement_steps.NOTED, step.row.relation))
        words += code
    flush()
    computed = tuple(_computed_factors(update, payloads, registers))
    outcome = _encode_outcome(update, payloads, registers)
    return Assembly(tuple(parts), registers, source + 1 + len(computed), computed, outcome)


def _computed_factors(
    update: Update, payloads: Mapping[str, Payload], registers: Mapping[int, int]
) -> Iterator[tuple[Expr, LaneRing]]:
    """Yield the factors of lanes that programs cannot compute, with the rings of their lanes."""
    for lane, ring in zip(update.lanes, payloads[update.target].rings, strict=True):
        for factor in lane or ():
            if not isinstance(ring, Cofactor) or _encode_lifted_key(factor, registers) is None:
                yield factor, ring


def computed_ring(type: Type, target: Ring) -> Ring:
    """Choose the ring of a computed factor: the smallest that goes into the target's."""
    if type.kind is Kind.DOUBLE:
        return target
    return Ring.EXACT if type.is_exact and type.kind is not Kind.INT else Ring.COUNT  # one word: it goes into any ring


def _same(step: Let) -> Column | None:
    """Return the column whose words the variable's are."""
    match step.value:
        case Column() as column if are_stored_alike(column.type, step.variable.type):
            return column
    return None


def _encode(
    step: StatementStep,
    registers: Mapping[int, int],
    known: Iterable[int],
    source: int,
    auxiliary: Mapping[str, AuxiliaryPlan],
) -> list[int] | None:
    """Encode a step as words; None if it has to be evaluated."""
    match step:
        case Lookup(range=None, row=None):
            return _lookup(step, registers, known, source)
        case Lookup(row=RowFields(aux)):
            return _row(step, auxiliary[aux], registers, known)
        case FilterStep(predicate):
            compared = [_encode_comparison(part, registers) for part in conjuncts(predicate)]
            if all(compared):
                return [w for c in compared if c for w in _operation(statement_steps.COMPARE, [*c, *known])]
        case Let(variable, Literal(value)) if value is None or is_own_key(value, variable.type):
            constant = int(value) if value is not None else null_of(variable.type)
            return _operation(statement_steps.SET, [registers[variable.id], constant])
    return None


def _operation(operation: int, words: list[int]) -> list[int]:
    return [operation, 2 + len(words), *words]


def _lookup(step: Lookup, registers: Mapping[int, int], known: Iterable[int], source: int) -> list[int]:
    live = sorted({registers[id] for id in step.live if id in registers} & set(known))
    bound = [registers[v.id] for _, v in step.bound_keys]
    binds = [(position, registers[v.id]) for position, v in step.binds if v.id in step.live]
    counts = [len(bound), len(binds), len(live)]
    lists = [*bound, *(word for pair in binds for word in pair), *live]
    return _operation(_LOOKUPS[step.method], [0, source, step.index, *counts, 0, 0, *lists])


def _row(step: Lookup, aux: AuxiliaryPlan, registers: Mapping[int, int], known: Iterable[int]) -> list[int] | None:
    """Assemble a look at an auxiliary relation's row, if all that is read of it are counts."""
    assert step.row is not None
    output, payload = aux.output, aux.source.payload
    counts = {m.column: m.value[0][1] for m in output.measures if m.function == "count" and _is_lane(m.value)}
    made = dict(output.items)
    lanes = [output.count]
    for title, v in step.row.fields:
        lane = counts.get(made[title]) if isinstance(made[title], Column) else None  # type: ignore[arg-type]
        if lane is None:
            return None
        lanes += [lane] if v.id in step.live else []
    if any(payload.rings[lane] is not Ring.COUNT for lane in lanes):
        return None
    live = sorted({registers[id] for id in step.live if id in registers} & set(known))
    bound = [registers[v.id] for _, v in step.bound_keys]
    into = [-1, *(registers[v.id] for _, v in step.row.fields if v.id in step.live)]
    pairs = [word for lane, register in zip(lanes, into, strict=True) for word in (payload.offsets[lane], register)]
    return _operation(statement_steps.ROW, [0, 0, 0, len(bound), len(lanes), len(live), 0, 0, *bound, *pairs, *live])


def _is_lane(terms: tuple[tuple[int, int], ...]) -> bool:
    return len(terms) == 1 and terms[0][0] == 1


def _encode_comparison(predicate: Expr, registers: Mapping[int, int]) -> list[int] | None:
    """Encode a comparison of two keys, or of a key with a constant, if their words compare as their values do."""
    match predicate:
        case Call(name, (Column() as left, Column() as right)) if name in MIRRORED:
            texts = left.type == right.type and left.type.kind is Kind.VARCHAR and name in ("=", "<>")
            if not texts and not (
                is_plain(left.type) and is_plain(right.type) and are_stored_alike(left.type, right.type)
            ):
                return None
            operands = [registers[left.id], registers[right.id], 0, null_of(left.type), null_of(right.type)]
        case Call(name, (Literal(), Column())) if name in MIRRORED:
            return _encode_comparison(replace(predicate, name=MIRRORED[name], args=predicate.args[::-1]), registers)
        case Call(name, (Column() as left, Literal(value, type))) if name in MIRRORED and value is not None:
            if not (is_own_key(value, left.type) and are_stored_alike(left.type, type)):
                return None
            operands = [registers[left.id], -1, int(value), NULL, 0]
        case _:
            return None
    return [COMPARISONS.index(name), *operands]


def _encode_outcome(update: Update, payloads: Mapping[str, Payload], registers: Mapping[int, int]) -> Words:
    """Encode the keys, and for each lane of the target its factors.

    A sum times a count is cheap, or at all possible, so counts come last.
    """
    target = payloads[update.target]
    lookups = [step for step in update.steps if isinstance(step, Lookup)]
    given = [(payloads[update.delta], update.picks), *((payloads[s.source], s.picks) for s in lookups)]
    words = [len(update.keys), *(registers[k.id] for k in update.keys), target.width]
    computed = len(given)
    for lane, (offset, ring) in enumerate(zip(target.offsets, target.rings, strict=True)):
        words += [offset, ring.words, ring.code]
        if update.lanes[lane] is None:
            words.append(0)
            continue
        found = [(s, p.offsets[picks[lane]], p.rings[picks[lane]]) for s, (p, picks) in enumerate(given) if picks]
        if isinstance(ring, Cofactor):
            product = _encode_cofactor_product(ring, found, update.lanes[lane] or (), computed, registers)
            words += [len(product) // 3, *product]
            computed += sum(_encode_lifted_key(factor, registers) is None for factor in update.lanes[lane] or ())
            continue
        factors = [(source, at, own) for source, at, own in found if isinstance(own, Ring)]
        for expr in update.lanes[lane] or ():
            factors.append((computed, 0, computed_ring(expr.type, ring)))
            computed += 1
        factors.sort(key=lambda factor: factor[2] is Ring.COUNT)
        words.append(len(factors))
        for n, (source, at, own) in enumerate(factors):
            words += [source, at, kind_of(ring, own, n > 0)]
    return np.array(words, np.int64)


def _encode_cofactor_product(
    ring: Cofactor, found: Iterable[tuple[int, int, LaneRing]], lane: Lane, computed: int, registers: Mapping[int, int]
) -> list[int]:
    """Encode the factors of a product in the cofactor ring: source, offset and kind of each.

    Args:
        found: Source, offset and ring of each factor that is given.
        computed: The source of the first factor of `lane` that is computed.
    """
    words, variables = [], set[int]()
    for source, at, own in found:
        if isinstance(own, Cofactor):
            words += [source, at, kind_of_factor(BLOCK, own.first, own.size, ring.first)]
            variables |= {*range(own.first, own.first + own.size)}
        else:
            assert own is Ring.COUNT, f"no {own.name} in {ring.name}"
            words += [source, at, kind_of_factor(SCALAR)]
    for factor in lane:
        value, key = lifted(factor), _encode_lifted_key(factor, registers)
        assert value, f"{factor} is not lifted"
        words += [*(key or (computed, 0)), kind_of_factor(LIFTED, value[1], 1, ring.first)]
        computed += key is None
        variables.add(value[1])
    assert variables == {*range(ring.first, ring.first + ring.size)}, f"{ring.name} is made of {variables}"
    return words


def _encode_lifted_key(factor: Expr, registers: Mapping[int, int]) -> tuple[int, int] | None:
    """Encode a lifted key that kernels make a double: its register, and the double by which it is divided, or 0.

    None if the factor is no such key.
    """
    value = lifted(factor)
    match value[0] if value else None:
        case Column(id, _, type) if id in registers and (type == DOUBLE or (type.is_exact and not type.is_wide)):
            return -1 - registers[id], 0 if type == DOUBLE else int(np.float64(10.0**type.scale).view(np.int64))
    return None
