"""A matrix program → its triggers, the cheapest way that is found: the phases of Fig. 5.11 in their order.

simplify · iterative models · search · ANF · derivation · factorisation · materialisation

Everything is judged by what a trigger costs for an update of rank 1, over all inputs that change; where that is the
same, by what the program costs as a whole (`price`).
"""

from collections.abc import Sequence
from dataclasses import field, replace

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.maintain.matrix.anf import Anf, normalise
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.equivalence_search import SearchResult, search
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.iterative_models import WRITTEN, rewrite_iterations, write_models
from squallpy.maintain.matrix.materialise import IncrementalProgram, maintain, maintain_normalised
from squallpy.maintain.matrix.matrix_expressions import Iterate, Matrix, walk
from squallpy.maintain.matrix.matrix_program import MatrixProgram, Statement
from squallpy.maintain.matrix.meta_information import Facts, infer
from squallpy.maintain.matrix.simplify import simplify
from squallpy.maintain.matrix.trigger_cost import LEFT, evaluation_price, trigger_price

AUTO = "auto"
STRATEGIES = (AUTO, "reeval", "incr", "hybrid")
MOST_SEARCHED = 20  # definitions of a program whose statements are still searched


@dataclass(frozen=True, slots=True)
class Way:
    """An iterative model of an iteration, and what its triggers and its evaluation cost."""

    model: str
    trigger: float
    evaluation: float
    views: int


@dataclass(frozen=True, slots=True)
class Report:
    """The alternatives that were weighed: models of each iteration, the chosen one first, and the search of each
    statement."""

    iterations: tuple[tuple[str, tuple[Way, ...]], ...] = ()
    searches: tuple[tuple[str, SearchResult], ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Choices that can be forced: an iterative model by its name, a strategy."""

    model: str = AUTO
    strategy: str = AUTO

    @property
    def dense(self) -> bool | None:
        return {"hybrid": True, "incr": False}.get(self.strategy)


DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class CompiledMatrices:
    """A program with its triggers, and how they were found."""

    maintained: IncrementalProgram
    report: Report
    options: Options


def compile_program(
    program: MatrixProgram,
    changing: Sequence[str],
    sizes: Sizes,
    options: Options = DEFAULTS,
    growing: Sequence[str] = (),
) -> CompiledMatrices:
    """Compile a program to triggers for the inputs that change.

    Args:
        sizes: Of its symbols, as far as known.
        growing: The symbols that may grow.
    """
    compiler = _Compiler(changing, Guess(sizes), options)
    modelled, iterations = compiler.choose_models(program)
    searched, searches = compiler.search_statements(modelled)
    incremental = maintain(searched, changing, compiler.guess, options.dense, growing)
    return CompiledMatrices(incremental, Report(iterations, searches), options)


Weighed = tuple[float, float, int]  # the price of the triggers, of an evaluation, and how many views there are


@dataclass(frozen=True, slots=True)
class _Compiler:
    changing: Sequence[str]
    guess: Guess
    options: Options
    _prices: dict[MatrixProgram, Weighed] = field(default_factory=dict)

    def price(self, program: MatrixProgram) -> Weighed:
        """Estimate the cost of a program; programs equal in ANF are estimated once."""
        anf = normalise(program, self.guess)
        if anf.program not in self._prices:
            self._prices[anf.program] = self.weigh(anf)
        return self._prices[anf.program]

    def weigh(self, anf: Anf) -> Weighed:
        incremental = maintain_normalised(anf, self.changing, self.guess, self.options.dense)
        triggers = sum(
            trigger_price(incremental, t, 1, self.guess.sizes, LEFT).total for t in incremental.triggers.values()
        )
        return triggers, evaluation_price(incremental, self.guess.sizes).total, len(incremental.kept)

    def choose_models(self, program: MatrixProgram) -> tuple[MatrixProgram, tuple[tuple[str, tuple[Way, ...]], ...]]:
        """Rewrite each iteration in its best model."""
        found = []
        while (place := _find_iteration(program)) is not None:
            at, iteration = place
            ways = self._force_ways(write_models(iteration, _infer_facts(program, at), program.ring))
            weighed = []
            for model, written in ways.items():
                candidate = _replace_iteration(program, at, iteration, written)
                weighed.append((Way(model, *self.price(_unroll_others(candidate))), candidate))
            weighed.sort(key=lambda pair: (pair[0].trigger, pair[0].evaluation, pair[0].views))
            anew = min(weighed, key=lambda pair: pair[0].evaluation)
            if self.options.strategy == AUTO and weighed[0][0].trigger > anew[0].evaluation:
                weighed.remove(anew)  # no trigger is better than to evaluate in the cheapest way
                weighed.insert(0, anew)
            found.append((str(iteration), tuple(way for way, _ in weighed)))
            program = weighed[0][1]
        return program, tuple(found)

    def _force_ways(self, ways: dict[str, Matrix]) -> dict[str, Matrix]:
        model = self.options.model.lower()
        if model == AUTO or len(ways) == 1:
            return ways
        if model == WRITTEN:
            return dict([next(iter(ways.items()))])
        if model not in ways:
            hint = nearest(model, ways)
            raise SquallError("SQ7003", f'"{self.options.model}" is no iterative model of this program', hint=hint)
        return {model: ways[model]}

    def search_statements(self, program: MatrixProgram) -> tuple[MatrixProgram, tuple[tuple[str, SearchResult], ...]]:
        """Rewrite each statement in its cheapest form.

        Where addition is idempotent it stays: forms differ in how soon an update ends there, which depends on the
        entries. An iteration step by step prunes updates most often.
        """
        if program.ring.idempotent:
            return program, ()
        found = []
        for at, statement in enumerate(program.statements):
            if len(normalise(program, self.guess).definitions) > MOST_SEARCHED:
                continue
            first = simplify(statement.value, _infer_facts(program, at), program.ring)

            def cost(form: Matrix, at: int = at, program: MatrixProgram = program) -> float:
                triggers, evaluation, _ = self.price(_with(program, at, form))
                return triggers + 1e-6 * evaluation

            result = search(first, cost)
            if result.applications:
                found.append((str(statement.name), result))
                program = _with(program, at, result.best)
        return program, tuple(found)


def _find_iteration(program: MatrixProgram) -> tuple[int, Iterate] | None:
    """Find the first iteration, of a known number of steps, that has none inside."""
    for at, statement in enumerate(program.statements):
        inner = [node for node in walk(statement.value) if isinstance(node, Iterate) and node.until is None]
        if inner:
            return at, inner[-1]
    return None


def _replace_iteration(program: MatrixProgram, at: int, iteration: Iterate, written: Matrix) -> MatrixProgram:
    value = rewrite_iterations(program.statements[at].value, lambda node: written if node == iteration else None)
    return _with(program, at, value)


def _unroll_others(program: MatrixProgram) -> MatrixProgram:
    """Rewrite the other iterations in any of their models."""
    while (place := _find_iteration(program)) is not None:
        at, iteration = place
        ways = write_models(iteration, _infer_facts(program, at), program.ring)
        program = _replace_iteration(program, at, iteration, list(ways.values())[-1])
    return program


def _with(program: MatrixProgram, at: int, value: Matrix) -> MatrixProgram:
    statements = list(program.statements)
    statements[at] = Statement(statements[at].name, value)
    return replace(program, statements=tuple(statements))


def _infer_facts(program: MatrixProgram, at: int) -> Facts:
    """Infer the facts of all names that a statement may read."""
    facts = {i.name.name: i.properties for i in program.inputs}
    for statement in program.statements[:at]:
        facts[statement.name.name] = infer(statement.value, facts)
    return facts
