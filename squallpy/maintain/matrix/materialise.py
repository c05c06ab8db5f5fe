"""Materialisation: which views are kept, and a trigger for each input that changes (§5.3.5).

    B := A * A     →     on A += uA * vA:     t0 := A * uA
    C := B * B                                t1 := vA * uA    …
                                              UB := [uA, t3]   …
                                              A += uA * vA;  B += UB * VB;  C += UC * VC

A trigger computes all deltas from the views as they were, then updates the views. A view that neither a trigger nor
anybody else reads is not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.anf import Anf, Builder, normalise
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate, MatrixFactor
from squallpy.maintain.matrix.derivation import DerivedDeltas, derive, label
from squallpy.maintain.matrix.derivation import delta as delta_of
from squallpy.maintain.matrix.dimensions import Number, Size
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.factored_deltas import Factors, choose_factors, expand_chains, factorise
from squallpy.maintain.matrix.growing_dimensions import grows_in_place, name_constants
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Entrywise,
    Inverse,
    Iterate,
    Let,
    Matrix,
    Name,
    Scale,
    Sum,
    add,
    bottom_up,
    names,
    product,
    shape,
    substitute,
    transpose,
)
from squallpy.maintain.matrix.matrix_program import MatrixProgram, Statement
from squallpy.maintain.matrix.recomputed_entries import change_of_all, change_of_products, change_of_rows, whole_delta
from squallpy.maintain.matrix.simplify import simplify
from squallpy.maintain.matrix.symbolic_matrices import fresh_name

RANK = "k"  # the columns of an update


@dataclass(frozen=True, slots=True)
class MatrixUpdate:
    """view += u * v"""

    view: Name
    u: Matrix
    v: Matrix
    left: tuple[Name, Name] | None = None
    """Names for as much of u and v as made a difference: where addition is idempotent, all else follows from that."""

    def __str__(self) -> str:
        if isinstance(self.v, FactorUpdate):
            return f"{self.view} += {self.v}"
        left = f" (of which {self.left[0]} * {self.left[1]} is new)" if self.left else ""
        return f"{self.view} += {self.u} * {self.v}{left}"


@dataclass(frozen=True, slots=True)
class MatrixTrigger:
    """The steps and updates that apply a change u · v of an input.

    Args:
        factored: Each delta as it was derived, in factors.
        steps: The same one operation at a time, from views as they were.
        updates: Of views, after the steps.
        by_rows: The columns of u are those of a unit matrix, one for each row that changes.
    """

    input: Name
    u: Name
    v: Name
    derived: DerivedDeltas
    factored: tuple[Statement, ...]
    steps: tuple[Statement, ...]
    updates: tuple[MatrixUpdate, ...]
    by_rows: bool = False

    @property
    def may_fail(self) -> bool:
        """True if it computes what has no value for some matrices: an inverse, a factor, a limit."""
        values = (*(step.value for step in self.steps), *(update.v for update in self.updates))
        return any(isinstance(value, Inverse | Iterate | Decomposition | FactorUpdate) for value in values)

    def reads(self) -> set[str]:
        """Collect the names that its steps and updates read."""
        read = [step.value for step in self.steps] + [half for update in self.updates for half in (update.u, update.v)]
        return set[str]().union(*map(names, read))


@dataclass(frozen=True, slots=True)
class IncrementalProgram:
    """A program and the triggers that maintain its views; `kept` views in the order of their definitions."""

    anf: Anf
    triggers: dict[str, MatrixTrigger]
    kept: tuple[Name, ...]
    growing: tuple[str, ...] = ()
    """Symbols of dimensions that grow in place: their constants have triggers, too."""

    @property
    def program(self) -> MatrixProgram:
        return self.anf.program

    @property
    def stored(self) -> tuple[Name, ...]:
        """All that there is of it between two updates: its inputs and the views that are kept."""
        return (*(source.name for source in self.program.inputs), *self.kept)

    @property
    def matrices(self) -> list[str]:
        """All that triggers may read as a view: inputs, definitions and constants."""
        return [*(name.name for name in self.program.names()), *self.anf.constants]

    def find_matrix(self, name: str) -> Name:
        """Find an input, a constant or a definition."""
        return next(n for n in (*self.kept, *self.program.names()) if n.name == name)

    def in_own_names(self, matrix: Matrix) -> Matrix:
        """Rewrite an expression in names that the program has itself."""
        for definition in reversed(self.anf.definitions):
            if definition.name.name not in self.program.outputs:
                matrix = substitute(matrix, definition.name.name, definition.value)
        return bottom_up(matrix, _inline_let)


def _inline_let(node: Matrix) -> Matrix | None:
    return substitute(node.body, node.name.name, node.value) if isinstance(node, Let) else None


def maintain(
    program: MatrixProgram,
    changing: Sequence[str],
    guess: Guess,
    dense: bool | None = None,
    growing: Sequence[str] = (),
) -> IncrementalProgram:
    """Write a trigger for each input that changes.

    Args:
        dense: Forces (True) or forbids (False) dense deltas.
        growing: The symbols of dimensions that may grow.
    """
    return maintain_normalised(normalise(program, guess), changing, guess, dense, growing)


def maintain_normalised(
    anf: Anf, changing: Sequence[str], guess: Guess, dense: bool | None = None, growing: Sequence[str] = ()
) -> IncrementalProgram:
    """Write the triggers of a program in ANF, as `maintain` does."""
    growing = tuple(symbol for symbol in growing if grows_in_place(anf, {symbol}))
    anf = name_constants(anf, growing)
    triggers = {name: write_trigger(anf, name, guess, dense) for name in (*changing, *anf.constants)}
    kept_names, inputs = _collect_kept(anf, list(triggers.values())), {i.name.name for i in anf.program.inputs}
    pruned = {name: _prune(trigger, kept_names | ({name} & inputs)) for name, trigger in triggers.items()}
    constants = tuple(anf.source(name) for name in anf.constants if name in kept_names)
    views = tuple(d.name for d in anf.definitions if d.name.name in kept_names)
    return IncrementalProgram(anf, pruned, (*constants, *views), growing)


def write_trigger(anf: Anf, changed: str, guess: Guess, dense: bool | None = None) -> MatrixTrigger:
    """Write the trigger of one input, with an update of every view that it changes."""
    return _Writer(anf, changed, guess, dense).in_own_names()


class _Writer:
    """Writes a trigger: delta by delta, each in the names of those before it."""

    def __init__(self, anf: Anf, changed: str, guess: Guess, dense: bool | None) -> None:
        self._anf, self._dense, self._source = anf, dense, anf.source(changed)
        self._taken = {name.name for name in anf.program.names()} | anf.program.symbols()
        rank = Size.of(fresh_name(RANK, self._taken))
        letters = changed if changed not in anf.constants else ""
        self._u = Name(fresh_name(f"u{letters}", self._taken), self._source.rows, rank)
        self._v = Name(fresh_name(f"v{letters}", self._taken), rank, self._source.cols)
        known = {**guess.sizes, rank.symbols[0][0]: 1}
        self._builder = Builder(Guess(known), anf.program.ring, dict(anf.facts), self._taken, prefix="t")
        self._derived = derive(anf, changed)
        self._whole: dict[str, Factors] = {}
        self._blocks: dict[str, Factors] = {}
        self._factored: list[Statement] = []
        self._updates: list[MatrixUpdate] = []
        self._by_rows = False

    def in_own_names(self) -> MatrixTrigger:
        self._update(self._source, self._derived.deltas[self._source.name], self._u, self._v)
        definitions = {d.name.name: d for d in self._anf.definitions}
        names_of = {delta.name: name for name, delta in self._derived.deltas.items()}
        for statement in self._derived.statements:
            self._delta(definitions[names_of[statement.name.name]], statement)
        steps, factored = tuple(self._builder.definitions), tuple(self._factored)
        updates = tuple(self._updates)
        return MatrixTrigger(self._source, self._u, self._v, self._derived, factored, steps, updates, self._by_rows)

    def _delta(self, definition: Statement, delta: Statement) -> None:
        """Factor a delta, name its halves, and have its view updated by them."""
        made = self._factors(definition, delta)
        if isinstance(made, FactorUpdate) and not self._is_read(delta.name):
            self._factored.append(Statement(delta.name, made))
            rotated = FactorUpdate(made.upper, made.of, self._leaf(made.u), self._leaf(made.v))
            self._update(definition.name, delta.name, Diagonal(made.rows), rotated)
            return
        if isinstance(made, FactorUpdate):
            made = whole_delta(made, self._builder.guess)
        u, v = (
            self._name_factor(f"{letter}{label(definition.name.name)}", half)
            for letter, half in (("U", made.u), ("V", made.v))
        )
        self._update(definition.name, delta.name, u, v)
        self._blocks[delta.name.name] = Factors(tuple((self._leaf(a), self._leaf(b)) for a, b in made.blocks))

    def _is_read(self, delta: Name) -> bool:
        """True if the change of another definition depends on a delta."""
        return any(delta.name in names(statement.value) for statement in self._derived.statements)

    def _factors(self, definition: Statement, delta: Statement) -> Factors | FactorUpdate:
        known, builder = choose_factors(delta.value, self._whole, self._blocks), self._builder
        if isinstance(definition.value, Inverse):
            inner = factorise(
                expand_chains(_change_of_inverse(delta.value), known), False, builder.guess, builder.facts
            )
            return woodbury(definition.name, inner)
        if isinstance(definition.value, Decomposition) and (rotations := self._rotations(definition)):
            return rotations
        if isinstance(definition.value, Entrywise | Iterate | Decomposition):
            return self._recomputed(definition, delta)
        return factorise(expand_chains(delta.value, known), self._dense, builder.guess, builder.facts)

    def _rotations(self, definition: Statement) -> FactorUpdate | None:
        """Write the update of a triangular factor by the change, of few columns, of its square; None if it has many."""
        decomposition = definition.value
        assert isinstance(decomposition, Decomposition)
        if decomposition.factor is MatrixFactor.Q:
            return None
        is_upper, of, builder = decomposition.factor is MatrixFactor.R, decomposition.of, self._builder
        square = product(transpose(of), of) if is_upper else of
        change = delta_of(square, self._derived.deltas, builder.ring, self._source.name)
        assert change is not None
        known = choose_factors(change, self._whole, self._blocks)
        found = factorise(expand_chains(change, known), False, builder.guess, builder.facts)
        if any(isinstance(half, Diagonal) for pair in found.blocks for half in pair):
            return None
        return FactorUpdate(is_upper, definition.name, found.u, found.v)

    def _recomputed(self, definition: Statement, delta: Statement) -> Factors:
        """Factor the change of what is computed again: entries in the rows that the input has changed, or else all."""
        deltas, guess, negates = self._derived.deltas, self._builder.guess, self._builder.ring.negates
        is_entrywise = isinstance(definition.value, Entrywise)
        if is_entrywise and not negates:
            return change_of_products(delta.value, self._whole, guess)
        found = change_of_rows(definition, deltas, self._blocks, self._u) if is_entrywise else None
        self._by_rows |= found is not None
        known = {name: delta for name, delta in deltas.items() if delta.name in self._whole}
        return found or change_of_all(definition, known, self._whole, guess, negates)

    def _update(self, view: Name, delta: Name, u: Matrix, v: Matrix) -> None:
        """Add an update of a view by u·v; all else follows from its new part, where addition is idempotent."""
        left = self._left(u, v) if self._anf.program.ring.idempotent else None
        self._whole[delta.name] = self._blocks[delta.name] = Factors((left or (u, v),))
        self._updates.append(MatrixUpdate(view, u, v, left))

    def _left(self, u: Matrix, v: Matrix) -> tuple[Name, Name]:
        left, right = (Name(fresh_name(f"{half}~", self._taken), *shape(half)) for half in (u, v))
        return left, right

    def _name_factor(self, wanted: str, half: Matrix) -> Matrix:
        name = Name(fresh_name(wanted, self._taken), *shape(half))
        self._factored.append(Statement(name, half))
        return self._builder.define(name, self._simple(half))

    def _leaf(self, half: Matrix) -> Matrix:
        return self._builder.leaf(self._simple(half))

    def _simple(self, half: Matrix) -> Matrix:
        return simplify(half, self._builder.facts, self._builder.ring)


def _change_of_inverse(delta: Matrix) -> Matrix:
    """Match the change of an inverted matrix.

    (m + δ)⁻¹ - m⁻¹   →   δ
    """
    match delta:
        case Sum((Inverse(Sum((_, change))), _)):
            return change
    raise AssertionError(delta)


def woodbury(inverse: Name, of: Factors) -> Factors:
    """Factor the change of an inverse by Woodbury's formula (Fig. A.2).

    (m + U V)⁻¹ - m⁻¹ = -m⁻¹ U · (I + V m⁻¹ U)⁻¹ V m⁻¹
    """
    small = Inverse(add(Diagonal(of.rank), product(of.v, inverse, of.u)))
    return Factors(((Scale(Number(-1), product(inverse, of.u)), product(small, of.v, inverse)),))


def _collect_kept(anf: Anf, triggers: Sequence[MatrixTrigger]) -> set[str]:
    """Collect the outputs, and the views that triggers read to maintain those that are kept."""
    kept_names, inputs = set(anf.program.outputs), {i.name.name for i in anf.program.inputs}
    views = {d.name.name for d in anf.definitions} | set(anf.constants)
    while True:
        read = set[str]().union(*(_prune(trigger, kept_names | inputs).reads() for trigger in triggers)) & views
        if read <= kept_names:
            return kept_names
        kept_names |= read


def _prune(trigger: MatrixTrigger, kept_names: set[str]) -> MatrixTrigger:
    """Drop the updates of views that are not kept, and the steps that only those need."""
    renamed = {
        name.name: half
        for update in trigger.updates
        if update.view.name not in kept_names and update.left
        for name, half in zip(update.left, (update.u, update.v), strict=True)
    }
    updates = [_rename(update, renamed) for update in trigger.updates if update.view.name in kept_names]
    needed = set[str]().union(*(names(update.u) | names(update.v) for update in updates))
    steps = []
    for step in reversed(trigger.steps):
        if step.name.name in needed:
            steps.append(Statement(step.name, _substitute_all(step.value, renamed)))
            needed |= names(steps[-1].value)
    message = tuple(
        replace(update, left=None) if update.left and not {n.name for n in update.left} & needed else update
        for update in updates
    )
    return replace(trigger, steps=tuple(reversed(steps)), updates=message)


def _rename(update: MatrixUpdate, renamed: Mapping[str, Matrix]) -> MatrixUpdate:
    return replace(update, u=_substitute_all(update.u, renamed), v=_substitute_all(update.v, renamed))


def _substitute_all(matrix: Matrix, renamed: Mapping[str, Matrix]) -> Matrix:
    """Substitute names until none is left, for what a name stands for may itself be renamed."""
    while used := names(matrix) & set(renamed):
        for name in used:
            matrix = substitute(matrix, name, renamed[name])
    return matrix
