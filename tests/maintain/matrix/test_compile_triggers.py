"""What the compiler chooses, and what it says that costs."""

import pytest

from squallpy.base.recursion import run_deep
from squallpy.base.semirings import ARITHMETIC, BOOLEAN
from squallpy.maintain.matrix.compile_triggers import CompiledMatrices, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.explain_text import crossover, report_text
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.meta_information import Properties
from squallpy.maintain.matrix.parser import read_program
from squallpy.maintain.matrix.trigger_cost import evaluation_price, trigger_price

SHAPES: dict[str, tuple[int | str, int | str]] = {
    "A": ("n", "n"),
    "B": ("n", "p"),
    "T0": ("n", "p"),
    "X": ("m", "n"),
    "Y": ("m", 1),
    "Z": ("m", "p"),
    "L": ("n", "n"),
}
KNOWN = {"L": Properties(lower=True)}


def compiled(text: str, reads: str, sizes: dict[str, int], options: Options | None = None) -> CompiledMatrices:
    inputs = [
        MatrixInput(Name(name, *map(Size.of, SHAPES[name])), KNOWN.get(name, Properties())) for name in reads.split()
    ]
    program = read_program(text, inputs, ARITHMETIC)
    return compile_program(program, [inputs[0].name.name], sizes, options or Options())


def test_the_sixteenth_power_costs_what_the_paper_says() -> None:
    """122 n² operations against 8 n³, by squaring: ranks 1, 2, 4, 8, 16; an operation of a trigger
    counts for more, so from about n / 20 on it is evaluated."""
    made = compiled("P := A^16", "A", {"n": 3000})
    trigger = made.maintained.triggers["A"]
    assert made.report.iterations[0][1][0].model == "exponential"
    assert [str(update.u.cols) for update in trigger.updates] == ["k", "2k", "4k", "8k", "16k"]
    each = trigger_price(made.maintained, trigger, 1, {"n": 3000})
    assert each.operations == pytest.approx(122 * 3000**2, rel=0.01)
    assert each.visited == pytest.approx(5 * 3000**2, rel=0.01)
    assert evaluation_price(made.maintained, {"n": 3000}).operations == 8 * 3000**3
    assert crossover(made.maintained, trigger, {"n": 3000}) == pytest.approx(3000 / 20, rel=0.1)


def test_least_squares_keep_no_square_of_the_observations() -> None:
    made = compiled("beta := inv(X' * X) * X' * Y", "X Y", {"n": 100, "m": 500})
    assert [name.name for name in made.maintained.kept] == ["x1", "x2", "beta"]
    assert made.maintained.anf.facts["x1"].symmetric


@pytest.mark.parametrize(("p", "dense"), [(1, True), (2000, False)])
def test_thin_matrices_have_dense_deltas(p: int, dense: bool) -> None:
    """HYBRID where p is small, INCR where it is not (`linview` §5.3.2)."""
    made = compiled("T := iterate[16](T0)(t => A * t + B)", "A B T0", {"n": 2000, "p": p})
    last = made.maintained.triggers["A"].updates[-1]
    assert (str(last.u.cols) == "p") == dense


def test_traces_and_sums_make_no_matrix_of_a_change() -> None:
    """Neither the cube, nor the product of entries is needed: dot products of a few columns are."""
    for text in ("t := trace(A ^ 3)", "t := sum(A .* (A * A))"):
        made = compiled(text, "A", {"n": 1000})
        trigger = made.maintained.triggers["A"]
        assert [name.name for name in made.maintained.kept] == ["x0", "t"]
        assert {str(update.u.cols) for update in trigger.updates} == {"k", "2k", "1"}
        assert trigger_price(made.maintained, trigger, 1, {"n": 1000}).operations < 20 * 1000**2


def test_functions_of_entries_are_computed_again_for_changed_rows() -> None:
    made = compiled("P := A ./ (rowSums(A) * ones(1, n)); C := P > 0.5; Q := P * P", "A", {"n": 1000})
    trigger = made.maintained.triggers["A"]
    assert trigger.by_rows
    assert {update.view.name: str(update.u.cols) for update in trigger.updates}["Q"] == "2k"
    assert all(str(update.u) == "uA" for update in trigger.updates if update.view.name in "PC")
    whole = compiled("C := (A * A) .* A", "A", {"n": 1000}).maintained.triggers["A"]
    assert not whole.by_rows
    assert "C += eye(n) * VC" in map(str, whole.updates)


def test_strategies_and_models_are_as_forced() -> None:
    text, sizes = "T := iterate[16](T0)(t => A * t + B)", {"n": 2000, "p": 1}
    ranks = {}
    for strategy in ("incr", "hybrid"):
        made = compiled(text, "A B T0", sizes, Options("linear", strategy))
        ranks[strategy] = str(made.maintained.triggers["A"].updates[-1].u.cols)
    assert ranks == {"incr": "16k", "hybrid": "p"}
    ways = compiled(text, "A B T0", sizes, Options("skip-8")).report.iterations[0][1]
    assert [way.model for way in ways] == ["skip-8"]


def test_gradient_descent_is_iterated_by_a_matrix_formed_once() -> None:
    made = compiled("T := iterate[16](T0)(t => t - X' * (X * t - Z))", "X Z T0", {"n": 1000, "m": 1000, "p": 1})
    ways = {way.model: way.trigger for way in made.report.iterations[0][1]}
    assert ways["as written"] > ways["linear"]
    assert "x0 := X' * X" in str(made.maintained.program)


def test_structure_is_inferred() -> None:
    made = compiled("P := L * inv(L); S := L' * L; Q := S * S; U := L'", "L", {"n": 10})
    words = {name: known.words() for name, known in made.maintained.anf.facts.items()}
    assert words["P"] == ["lower"]
    assert words["S"] == words["Q"] == ["symmetric"]
    assert words["U"] == ["upper"]


def test_the_report_says_what_was_weighed() -> None:
    text = report_text(compiled("P := A^16", "A", {"n": 1000}), {"n": 1000})
    assert "→ exponential" in text and "linear" in text and "skip-4" in text
    assert "rank 1: 122 M operations, 5 M words visited, 84% of them in the cache, 33 steps" in text
    assert "anew:   8 G operations" in text


def test_what_did_not_change_is_left_out_where_addition_is_idempotent() -> None:
    program = read_program("R := G * G * G", [MatrixInput(Name("G", Size.of("n"), Size.of("n")))], BOOLEAN)
    trigger = compile_program(program, ["G"], {}).maintained.triggers["G"]
    first = trigger.updates[0]
    assert first.left is not None
    assert isinstance(first.u, Name) and first.u.name not in {n for step in trigger.steps for n in _names(step.value)}


def _names(matrix: object) -> set[str]:
    from squallpy.maintain.matrix.matrix_expressions import names

    return names(matrix)  # type: ignore[arg-type]


@pytest.mark.parametrize(("factors", "statements"), [(32, 5), (300, 11), (2000, 15)])
def test_long_powers_are_made_by_squaring(factors: int, statements: int) -> None:
    """Written out, A · A · … · A has as many statements as its binary digits have squarings and products."""
    text = " := ".join(["P", " * ".join(["A"] * factors)])
    made = run_deep(lambda: compiled(text, "A", {"n": 100}))
    assert len(made.maintained.anf.program.statements) == statements
