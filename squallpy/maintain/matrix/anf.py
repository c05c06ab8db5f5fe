"""Administrative normal form: one operation, one name (§5.3.5), in the cheapest order of each chain of products.

    beta := inv(X' * X) * X' * Y     →     x0 := X' * X
                                           x1 := inv(x0)
                                           x2 := X' * Y
                                           beta := x1 * x2

What is computed twice has one name. The operands of an operation are *leaves*: names, transposed ones, constants; in a
sum also multiples of these.
"""

from collections.abc import Container, Mapping
from dataclasses import field

from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.decompositions import Decomposition, FactorUpdate
from squallpy.maintain.matrix.expression_cost import Guess, Tree, cheapest_order
from squallpy.maintain.matrix.matrix_expressions import (
    SCALARS,
    Diagonal,
    Entrywise,
    Fill,
    Inverse,
    Iterate,
    Let,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    add,
    names,
    product,
    shape,
    stack,
    substitute,
    transpose,
)
from squallpy.maintain.matrix.matrix_program import MatrixProgram, Statement
from squallpy.maintain.matrix.meta_information import NOTHING, Properties, infer, mirror
from squallpy.maintain.matrix.simplify import simplify
from squallpy.maintain.matrix.symbolic_matrices import fresh_name


@dataclass(frozen=True, slots=True)
class Anf:
    """A program one operation at a time, and what is known of each name."""

    program: MatrixProgram
    facts: dict[str, Properties]
    constants: Mapping[str, Matrix] = field(default_factory=dict)
    """Constants that change as their dimensions grow."""

    def source(self, name: str) -> Name:
        """Return an input or a constant."""
        if name in self.constants:
            return Name(name, *shape(self.constants[name]))
        found = self.program.input(name)
        assert found
        return found.name

    @property
    def definitions(self) -> tuple[Statement, ...]:
        return self.program.statements


def normalise(program: MatrixProgram, guess: Guess) -> Anf:
    """Rewrite a program to ANF; names that its statements have stay."""
    facts = {i.name.name: i.properties for i in program.inputs}
    builder = Builder(guess, program.ring, facts, {name.name for name in program.names()}, program.outputs)
    for statement in program.statements:
        builder.statement(statement)
    return Anf(MatrixProgram(program.inputs, tuple(builder.definitions), program.outputs, program.ring), builder.facts)


@dataclass
class Builder:
    """Writes definitions in ANF. Operations that it gives a name itself are called `prefix` and a number; statements
    whose names are `kept` are there even if they say what another says."""

    guess: Guess
    ring: Semiring
    facts: dict[str, Properties]
    reserved_names: set[str]
    kept: Container[str] = ()
    prefix: str = "x"
    definitions: list[Statement] = field(default_factory=list)
    _numbered_names: list[Name] = field(default_factory=list)
    _memo: dict[Matrix, Name] = field(default_factory=dict)
    _aliases: dict[str, Matrix] = field(default_factory=dict)
    _stacks: dict[str, tuple[Matrix, ...]] = field(default_factory=dict)

    def statement(self, statement: Statement) -> None:
        value = statement.value
        for name, other in self._aliases.items():
            value = substitute(value, name, other)
        self.define(statement.name, simplify(value, self.facts, self.ring))

    def define(self, name: Name, value: Matrix) -> Matrix:
        """Write a statement's operations; returns the operand that holds its value.

        The last operation gets the statement's name, if that is kept or the operation is new.
        """
        while isinstance(value, Let):
            value = self._let(value)
        operation = self._operation(value)
        known = operation if _is_leaf(operation) else self._find(operation)
        if known is not None and name.name not in self.kept:
            self._aliases[name.name] = known
            return known
        self._add(name, operation)
        return name

    def _let(self, let: Let) -> Matrix:
        return simplify(substitute(let.body, let.name.name, self.leaf(let.value)), self.facts, self.ring)

    def _iterate(self, iteration: Iterate) -> Matrix:
        """Write a step one operation at a time, as lets; what no step changes is computed once, before them."""
        start, name = self.leaf(iteration.start), iteration.name
        facts = {**self.facts, name.name: NOTHING}
        step = Builder(self.guess, self.ring, facts, self.reserved_names, prefix=f"{name.name}_")
        body, changing = step.leaf(iteration.body), {name.name}
        before, lets = dict[str, Matrix](), list[Statement]()
        for definition in step.definitions:
            value = _substitute_all(definition.value, before)
            if names(value) & changing:
                changing.add(definition.name.name)
                lets.append(Statement(definition.name, value))
            else:
                before[definition.name.name] = self.leaf(value)
        body = _substitute_all(body, before)
        for let in reversed(lets):
            body = Let(let.name, let.value, body)
        return Iterate(iteration.count, start, name, body, iteration.until)

    def leaf(self, value: Matrix) -> Matrix:
        """Return an expression as an operand, computed under a name of its own unless it is one already."""
        if _is_leaf(value):
            return value
        match value:
            case Let():
                return self.leaf(self._let(value))
            case Transpose(of) if not isinstance(of, Stack):
                return self._straight(transpose(self.leaf(of)))
        operation = self._operation(value)
        if _is_leaf(operation):
            return operation
        found = self._find(operation)
        if found is None:
            found = Name(fresh_name(f"{self.prefix}{len(self._numbered_names)}", self.reserved_names), *shape(value))
            self._numbered_names.append(found)
            self._add(found, operation)
        return found

    def _find(self, operation: Matrix) -> Matrix | None:
        """Find the operand that equals an operation, perhaps transposed."""
        if operation in self._memo:
            return self._memo[operation]
        mirrored = mirror(operation, self.facts) if isinstance(operation, Product | Stack) else None
        if mirrored is not None and mirrored in self._memo:
            return self._straight(transpose(self._memo[mirrored]))
        return None

    def _straight(self, leaf: Matrix) -> Matrix:
        return leaf.of if isinstance(leaf, Transpose) and infer(leaf.of, self.facts).symmetric else leaf

    def _operation(self, value: Matrix) -> Matrix:
        """Replace the operands of an expression by leaves."""
        match value:
            case Product(factors):
                leaves = [self.leaf(factor) for factor in factors]
                _, (left, right) = cheapest_order(leaves, self.guess, self.facts)  # type: ignore[misc]
                return self._pair(self._tree(left), self._tree(right))
            case Sum(terms):
                return add(*(self._term(term) for term in terms))
            case Stack(parts):
                return stack(*(self.leaf(part) for part in parts))
            case Transpose(Stack(parts)):
                return Transpose(stack(*(self.leaf(part) for part in parts)))
            case Inverse(of):
                return Inverse(self.leaf(of))
            case Decomposition(factor, of):
                return Decomposition(factor, self.leaf(of))
            case FactorUpdate(upper, of, u, v):
                return FactorUpdate(upper, self.leaf(of), self.leaf(u), self.leaf(v))
            case Scale(by, of):
                return Scale(by, self.leaf(of))
            case Entrywise(function, operands):
                return Entrywise(function, tuple([o if isinstance(o, SCALARS) else self.leaf(o) for o in operands]))
            case RowDot(left, right):
                return RowDot(self.leaf(left), self.leaf(right))
            case MainDiagonal(of):
                return MainDiagonal(self.leaf(of))
            case Iterate():
                return self._iterate(value)
        return self.leaf(value)

    def _pair(self, left: Matrix, right: Matrix) -> Matrix:
        """Write left · right; of stacked operands only the parts whose products are not there yet.

        A·[u, t] with t1 = A·u   →   [t1, A·t]
        """
        pair = product(left, right)
        for stacked, other, before in ((right, left, False), (transpose(left), transpose(right), True)):
            if not isinstance(stacked, Name) or stacked.name not in self._stacks or self._find(pair) is not None:
                continue
            parts = self._stacks[stacked.name]
            if any(self._find(product(other, part)) is not None for part in parts):
                made = stack(*(self.leaf(self._pair(other, part)) for part in parts))
                return Transpose(made) if before else made
        return pair

    def _term(self, term: Matrix) -> Matrix:
        return Scale(term.factor, self.leaf(term.of)) if isinstance(term, Scale) else self.leaf(term)

    def _tree(self, tree: Tree) -> Matrix:
        return self.leaf(product(*map(self._tree, tree))) if isinstance(tree, tuple) else tree

    def _add(self, name: Name, operation: Matrix) -> None:
        self.definitions.append(Statement(name, operation))
        if isinstance(operation, Stack):
            self._stacks[name.name] = operation.parts
        self._memo.setdefault(operation, name)
        self.facts[name.name] = infer(operation, self.facts)


def _substitute_all(matrix: Matrix, values: Mapping[str, Matrix]) -> Matrix:
    for name in names(matrix) & values.keys():
        matrix = substitute(matrix, name, values[name])
    return matrix


def _is_leaf(value: Matrix) -> bool:
    return isinstance(value.of if isinstance(value, Transpose) else value, Name | Fill | Diagonal)
