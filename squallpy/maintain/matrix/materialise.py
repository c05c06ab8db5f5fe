"""Materialisation: which views are kept, and a trigger for each input that changes (§5.3.5).

    B := A * A     →     on A += uA * vA:     t0 := A * uA
    C := B * B                                t1 := vA * uA    …
                                              UB := [uA, t3]   …
                                              A += uA * vA;  B += UB * VB;  C += UC * VC

A trigger computes all deltas from the views as they were, then updates the views. A view that neither a trigger nor
anybody else reads is not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from squallpy.maintain.matrix.anf import Anf, Builder, normalise
from squallpy.maintain.matrix.cost import Guess
from squallpy.maintain.matrix.derive import Derived, derive, label
from squallpy.maintain.matrix.factorise import Factors, chains, factorise, related
from squallpy.maintain.matrix.growth import in_place, with_constants
from squallpy.maintain.matrix.language import fresh
from squallpy.maintain.matrix.nodes import (
    Diagonal,
    Inverse,
    Matrix,
    Name,
    Scale,
    Sum,
    add,
    names,
    product,
    shape,
    substitute,
)
from squallpy.maintain.matrix.program import Program, Statement
from squallpy.maintain.matrix.simplify import simplify
from squallpy.maintain.matrix.sizes import Number, Size

RANK = "k"  # the columns of an update


@dataclass(frozen=True, slots=True)
class Update:
    """view += u * v"""

    view: Name
    u: Matrix
    v: Matrix
    left: tuple[Name, Name] | None = None
    """Names for as much of u and v as made a difference: where addition is idempotent, all else follows from that."""

    def __str__(self) -> str:
        left = f" (of which {self.left[0]} * {self.left[1]} is new)" if self.left else ""
        return f"{self.view} += {self.u} * {self.v}{left}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """What is done when an input changes by u · v: `factored`, each delta as it was derived; `steps`, the same one
    operation at a time, from views as they were; then `updates`."""

    input: Name
    u: Name
    v: Name
    derived: Derived
    factored: tuple[Statement, ...]
    steps: tuple[Statement, ...]
    updates: tuple[Update, ...]

    def reads(self) -> set[str]:
        """The names that its steps and updates read."""
        read = [step.value for step in self.steps] + [half for update in self.updates for half in (update.u, update.v)]
        return set[str]().union(*map(names, read))


@dataclass(frozen=True, slots=True)
class Maintained:
    """A program and the triggers that keep its views fresh; `kept` views in the order of their definitions."""

    anf: Anf
    triggers: dict[str, Trigger]
    kept: tuple[Name, ...]
    growing: tuple[str, ...] = ()
    """Symbols of dimensions that grow in place: their constants have triggers, too."""

    @property
    def program(self) -> Program:
        return self.anf.program


def maintain(
    program: Program,
    changing: Sequence[str],
    guess: Guess,
    dense: bool | None = None,
    growing: Sequence[str] = (),
) -> Maintained:
    """The program with a trigger for each input that changes; `dense` forces (True) or forbids (False) dense deltas,
    `growing` are the symbols of dimensions that may grow."""
    return maintain_normalised(normalise(program, guess), changing, guess, dense, growing)


def maintain_normalised(
    anf: Anf, changing: Sequence[str], guess: Guess, dense: bool | None = None, growing: Sequence[str] = ()
) -> Maintained:
    """`maintain`, of a program in ANF."""
    growing = tuple(symbol for symbol in growing if in_place(anf, {symbol}))
    anf = with_constants(anf, growing)
    triggers = {name: trigger(anf, name, guess, dense) for name in (*changing, *anf.constants)}
    kept, inputs = _kept(anf, list(triggers.values())), {i.name.name for i in anf.program.inputs}
    pruned = {name: _pruned(trigger, kept | ({name} & inputs)) for name, trigger in triggers.items()}
    constants = tuple(anf.source(name) for name in anf.constants if name in kept)
    views = tuple(d.name for d in anf.definitions if d.name.name in kept)
    return Maintained(anf, pruned, (*constants, *views), growing)


def trigger(anf: Anf, changed: str, guess: Guess, dense: bool | None = None) -> Trigger:
    """The trigger of one input, with an update of every view that it changes."""
    source = anf.source(changed)
    taken = {name.name for name in anf.program.names()} | anf.program.symbols()
    rank = Size.of(fresh(RANK, taken))
    letters = changed if changed not in anf.constants else ""
    u = Name(fresh(f"u{letters}", taken), source.rows, rank)
    v = Name(fresh(f"v{letters}", taken), rank, source.cols)
    guess = Guess({**guess.known, rank.symbols[0][0]: 1})
    derived = derive(anf, changed)
    builder = Builder(guess, anf.program.ring, dict(anf.facts), taken, prefix="t")
    left = _left(anf, u, v, taken)
    whole = Factors((left or (u, v),))
    factors, blocks = {derived.deltas[changed].name: whole}, {derived.deltas[changed].name: whole}
    factored: list[Statement] = []
    updates = [Update(source, u, v, left)]
    definitions = {d.name.name: d for d in anf.definitions}
    changes = {delta.name: definitions[name] for name, delta in derived.deltas.items() if name in definitions}
    for statement in derived.statements:
        definition = changes[statement.name.name]
        made = _factors(definition, statement, related(statement.value, factors, blocks), builder, dense)
        halves = []
        for letter, half in (("U", made.u), ("V", made.v)):
            name = Name(fresh(f"{letter}{label(definition.name.name)}", taken), *shape(half))
            factored.append(Statement(name, half))
            halves.append(builder.define(name, simplify(half, builder.facts, builder.ring)))
        left = _left(anf, halves[0], halves[1], taken)
        factors[statement.name.name] = Factors((left or (halves[0], halves[1]),))
        blocks[statement.name.name] = Factors(tuple((builder.leaf(simplify(a, builder.facts, builder.ring)),
                                                     builder.leaf(simplify(b, builder.facts, builder.ring)))
                                                    for a, b in made.blocks))  # fmt: skip
        updates.append(Update(definition.name, halves[0], halves[1], left))
    return Trigger(source, u, v, derived, tuple(factored), tuple(builder.definitions), tuple(updates))


def _left(anf: Anf, u: Matrix, v: Matrix, taken: set[str]) -> tuple[Name, Name] | None:
    """Names for what is left of an update, where that is all that matters."""
    if not anf.program.ring.idempotent:
        return None
    left, right = (Name(fresh(f"{half}~", taken), *shape(half)) for half in (u, v))
    return left, right


def _factors(
    definition: Statement, delta: Statement, factors: dict[str, Factors], builder: Builder, dense: bool | None
) -> Factors:
    if isinstance(definition.value, Inverse):
        inner = factorise(chains(_changed(delta.value), factors), False, builder.guess, builder.facts)
        return woodbury(definition.name, inner)
    return factorise(chains(delta.value, factors), dense, builder.guess, builder.facts)


def _changed(delta: Matrix) -> Matrix:
    """(m + δ)⁻¹ - m⁻¹   →   δ"""
    match delta:
        case Sum((Inverse(Sum((_, change))), _)):
            return change
    raise AssertionError(delta)


def woodbury(inverse: Name, of: Factors) -> Factors:
    """(m + U V)⁻¹ - m⁻¹ = -m⁻¹ U · (I + V m⁻¹ U)⁻¹ V m⁻¹     (WOODBURY FORMULA, Fig. A.2)"""
    small = Inverse(add(Diagonal(of.rank), product(of.v, inverse, of.u)))
    return Factors(((Scale(Number(-1), product(inverse, of.u)), product(small, of.v, inverse)),))


def _kept(anf: Anf, triggers: Sequence[Trigger]) -> set[str]:
    """The outputs, and what the triggers read to maintain what is kept."""
    kept, inputs = set(anf.program.outputs), {i.name.name for i in anf.program.inputs}
    views = {d.name.name for d in anf.definitions} | set(anf.constants)
    while True:
        read = set[str]().union(*(_pruned(trigger, kept | inputs).reads() for trigger in triggers)) & views
        if read <= kept:
            return kept
        kept |= read


def _pruned(trigger: Trigger, kept: set[str]) -> Trigger:
    """Without the updates of other views, and the steps that only those need."""
    renamed = {
        name.name: half
        for update in trigger.updates
        if update.view.name not in kept and update.left
        for name, half in zip(update.left, (update.u, update.v), strict=True)
    }
    updates = [_renamed(update, renamed) for update in trigger.updates if update.view.name in kept]
    needed = set[str]().union(*(names(update.u) | names(update.v) for update in updates))
    steps = []
    for step in reversed(trigger.steps):
        if step.name.name in needed:
            steps.append(Statement(step.name, _substituted(step.value, renamed)))
            needed |= names(steps[-1].value)
    told = tuple(
        replace(update, left=None) if update.left and not {n.name for n in update.left} & needed else update
        for update in updates
    )
    return replace(trigger, steps=tuple(reversed(steps)), updates=told)


def _renamed(update: Update, renamed: Mapping[str, Matrix]) -> Update:
    return replace(update, u=_substituted(update.u, renamed), v=_substituted(update.v, renamed))


def _substituted(matrix: Matrix, renamed: Mapping[str, Matrix]) -> Matrix:
    """NB: what a name stands for may itself be renamed."""
    while used := names(matrix) & set(renamed):
        for name in used:
            matrix = substitute(matrix, name, renamed[name])
    return matrix
