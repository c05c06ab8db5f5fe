"""Trigger programs: the paper's examples, sharing of views, and what keeps views small."""

from pathlib import Path

import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.optimizer.plan import materialise_outer_joins
from squallpy.program.explain_text import program_text
from squallpy.program.trigger_program import TriggerProgram

RST = """
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'r');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 's');
CREATE STREAM t (c INT NOT NULL, d INT NOT NULL) USING csv OPTIONS (path 't');
"""


def program(sql: str, relations: str = RST) -> TriggerProgram:
    (query,) = compile_script(f"{relations} {sql};", "q.sql", lambda relation: ()).queries
    return to_program(query).program


def golden_example_2_2() -> None:
    """Example 2.1 of `dbtoaster-batch-ivm` compiles to the views and triggers of its Example 2.2."""
    text = program_text(program("SELECT r.b, COUNT(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY r.b"))
    assert text == (Path(__file__).parent / "example_2_2.txt").read_text()


def golden_self_join_reads_views_before_and_after_they_change() -> None:
    text = program_text(program("SELECT COUNT(*) FROM r x, r y WHERE x.b = y.a"))
    assert text == (Path(__file__).parent / "self_join.txt").read_text()


def test_atoms_alike_share_one_view() -> None:
    """Both sides of a self-join on one column need the same view of R."""
    compiled = program("SELECT COUNT(*) FROM r x, r y WHERE x.b = y.b")
    assert [view.name for view in compiled.views] == ["Q", "M_R"]


def test_rows_of_constants_are_compared_at_once() -> None:
    """Of nine pairs of rows one is alike; and that a row of constants is there nobody asks beside another atom."""
    rows = "(VALUES (1, 'a'), (2, 'b'), (3, 'c')) x(n, w) JOIN (VALUES (4, 'a'), (5, 'd'), (6, 'e')) y(m, v) ON w = v"
    (term,) = program(f"SELECT SUM(x.n + y.m) FROM {rows} JOIN r ON r.a = y.m").views[0].terms
    assert [atom.relation.name for atom in term.atoms] == ["r"]


def test_what_is_asked_of_one_row_is_kept() -> None:
    """Not how many rows there are, which changes with each of them and would go through all of R."""
    compiled = program("SELECT a FROM r WHERE a = 1 OR (SELECT COUNT(*) FROM s) > 9")
    (aux,) = compiled.auxiliary
    assert [f.name for f in aux.relation.fields] == ["asked"]
    assert "N1(asked) := (asked := M_S.0 > 9)" in program_text(compiled)


def test_aggregates_share_one_view() -> None:
    """SUM and COUNT over one join are lanes of one payload, not views of their own."""
    aggregates = "SUM(t.d), AVG(t.d), COUNT(*), SUM(r.a)"
    compiled = program(f"SELECT r.b, {aggregates} FROM r, s, t WHERE r.b = s.b AND s.c = t.c GROUP BY r.b")
    assert sorted(view.name for view in compiled.views) == ["M_R", "M_RS", "M_S", "M_ST", "M_T", "Q"]
    assert {v.name: len(v.terms[0].lanes) for v in compiled.views} == {
        "Q": 3,
        "M_ST": 2,
        "M_R": 2,
        "M_T": 2,
        "M_RS": 2,
        "M_S": 1,
    }


def test_no_view_pairs_what_two_variables_tie_to_the_delta() -> None:
    """TPC-H Q5's shape: ΔL ties orders and suppliers, which meet in a nation; no view may pair them all."""
    relations = """
    CREATE STREAM l (ok INT NOT NULL, sk INT NOT NULL) USING csv OPTIONS (path 'l');
    CREATE STREAM o (ok INT NOT NULL, n INT NOT NULL) USING csv OPTIONS (path 'o');
    CREATE STREAM u (sk INT NOT NULL, n INT NOT NULL) USING csv OPTIONS (path 'u');
    """
    compiled = program("SELECT COUNT(*) FROM l, o, u WHERE l.ok = o.ok AND l.sk = u.sk AND o.n = u.n", relations)
    assert not any({a.relation.name for a in v.atoms} == {"o", "u"} for v in compiled.views)


def test_static_tables_have_no_triggers_of_their_own_on_streams() -> None:
    relations = RST.replace("CREATE STREAM t", "CREATE TABLE t")
    compiled = program("SELECT COUNT(*) FROM s, t WHERE s.c = t.c", relations)
    load = next(t for t in compiled.triggers if t.relation.name == "t")
    assert [s.target for s in load.statements] == ["M_T"]
    assert compiled.triggers[0] is load, "tables are loaded before the first changes"
    assert [v.name for v in compiled.views] == ["Q", "M_T"], "the stream need not be kept: the table never changes"


STAR = """
CREATE STREAM l (ok INT NOT NULL, sk INT NOT NULL, q INT NOT NULL) USING csv OPTIONS (path 'l');
CREATE STREAM o (ok INT NOT NULL, y INT NOT NULL{}) USING csv OPTIONS (path 'o');
CREATE STREAM s (sk INT NOT NULL, n INT NOT NULL{}) USING csv OPTIONS (path 's');
CREATE STREAM t (n INT NOT NULL, x INT NOT NULL{}) USING csv OPTIONS (path 't');
"""
KEYS = [f", PRIMARY KEY ({key})" for key in ("ok", "sk", "n")]
BY_YEAR = (
    "SELECT o.y, SUM(l.q) FROM l, o, s, t WHERE l.ok = o.ok AND l.sk = s.sk AND s.n = t.n AND t.x > 0 GROUP BY o.y"
)


def test_no_view_widens_what_names_the_delta_by_its_key() -> None:
    """TPC-H Q9's shape: each lineitem has one order and one supplier, so ΔO and ΔS visit their lineitems."""
    compiled = program(BY_YEAR, STAR.format(*KEYS))
    joined = {view.name for view in compiled.views if view.degree > 1}
    assert joined == {"Q", "M_ST", "M_LOS"}  # ΔT names suppliers, not lineitems: M_LOS sums up theirs
    trigger = next(t for t in compiled.triggers if t.relation.name == "o")
    (statement,) = [s for s in trigger.statements if s.target == "Q"]
    assert [ref.name for ref in statement.refs] == ["ΔO", "M_L", "M_ST"]


def test_without_keys_views_join() -> None:
    joined = {view.name for view in program(BY_YEAR, STAR.format("", "", "")).views if view.degree > 1}
    assert joined == {"Q", "M_ST", "M_LOS", "M_LST", "M_LO", "M_LS"}


def test_what_a_key_names_goes_with_what_names_it() -> None:
    """TPC-H Q5's shape: ΔO ties lineitems and customers; a supplier, of the nation of one, is named by the other."""
    relations = """
    CREATE STREAM o (ok INT NOT NULL, ck INT NOT NULL) USING csv OPTIONS (path 'o');
    CREATE STREAM l (ok INT NOT NULL, sk INT NOT NULL) USING csv OPTIONS (path 'l');
    CREATE STREAM c (ck INT NOT NULL, n INT NOT NULL, PRIMARY KEY (ck)) USING csv OPTIONS (path 'c');
    CREATE STREAM s (sk INT NOT NULL, n INT NOT NULL, PRIMARY KEY (sk)) USING csv OPTIONS (path 's');
    """
    compiled = program(
        "SELECT COUNT(*) FROM c, s, o, l WHERE c.ck = o.ck AND l.ok = o.ok AND l.sk = s.sk AND c.n = s.n", relations
    )
    assert not any({a.relation.name for a in v.atoms} == {"c", "s"} for v in compiled.views)


def star(dimensions: int) -> tuple[str, str]:
    """A query that joins that many relations to one, and the relations."""
    names = [f"d{i}" for i in range(dimensions)]
    keys = ", ".join(f"k{i} INT NOT NULL" for i in range(dimensions))
    relations = f"CREATE STREAM f ({keys}) USING csv OPTIONS (path 'f');\n" + "\n".join(
        f"CREATE STREAM {n} (k INT NOT NULL, x INT NOT NULL) USING csv OPTIONS (path '{n}');" for n in names
    )
    joined = " AND ".join(f"f.k{i} = {n}.k" for i, n in enumerate(names))
    return f"SELECT d0.x, COUNT(*) FROM f, {', '.join(names)} WHERE {joined} GROUP BY d0.x", relations


def test_few_relations_are_joined_into_views() -> None:
    """A star of three has a view for each set of its points with the middle, and one for each relation."""
    assert len(program(*star(3)).views) == 2**3 + 3


def test_many_relations_are_kept_apart() -> None:
    """A star of nine would have 2⁹ views: its relations are materialised one by one."""
    compiled = program(*star(9))
    assert sorted(view.name for view in compiled.views) == [*(f"M_D{i}" for i in range(9)), "M_F", "Q"]


LETTERS = "abcdefghijlm"


def outer(kind: str, joins: list[tuple[str, str]], relations: int) -> tuple[str, str]:
    """Relations t0, t1, … (k, a, b, …, v), the first joined with the others, each by a condition."""
    names, columns = [f"t{i}" for i in range(relations)], ", ".join(f"{c} INT" for c in ("k", *LETTERS, "v"))
    declared = "\n".join(f"CREATE STREAM {n} ({columns}) USING csv OPTIONS (path '{n}');" for n in names)
    tables = " ".join(f"{kind} JOIN {table} ON {on}" for table, on in joins)
    return f"SELECT {', '.join(f'{n}.v AS {n}' for n in names)} FROM t0 {tables}", declared


STARS = {n: outer("LEFT", [(f"t{i}", f"t{i}.k = t0.{LETTERS[i - 1]}") for i in range(1, n)], n) for n in (4, 7, 13)}
CHAINS = {
    (kind, n): outer(kind, [(f"t{i}", f"t{i}.k = t{i - 1}.a") for i in range(1, n)], n)
    for kind in ("LEFT", "RIGHT", "FULL")
    for n in (4, 7, 13)
}
FLAKE = outer("LEFT", [(f"t{i}", f"t{i}.k = t{(i - 1) // 3}.{'abc'[i % 3]}") for i in range(1, 13)], 13)


def products(sql: str, relations: str) -> int:
    """The most that a query or one of its auxiliary relations sums up."""
    (query,) = compile_script(f"{relations} {sql};", "q.sql", lambda relation: ()).queries
    lowered = to_program(query).lowered
    return max(len(view.terms) for view in (*lowered.views, *(aux.view for aux in lowered.auxiliary)))


def statements(sql: str, relations: str) -> int:
    return sum(len(trigger.statements) for trigger in program(sql, relations).triggers)


def test_few_outer_joins_are_multiplied_out() -> None:
    """Three LEFT JOINs of a star are 2³ products; of a chain 4, for what finds nothing finds nothing further."""
    assert products(*STARS[4]) == 8
    assert products(*CHAINS["LEFT", 4]) == products(*CHAINS["RIGHT", 4]) == 4


@pytest.mark.parametrize("query", [STARS[7], STARS[13], CHAINS["LEFT", 13], CHAINS["RIGHT", 13], FLAKE])
def test_what_many_outer_joins_find_are_auxiliary_relations(query: tuple[str, str]) -> None:
    """Twelve LEFT JOINs would be 2¹² products: the rows of each, NULLs among them, are an auxiliary relation."""
    assert products(*query) <= materialise_outer_joins.MOST


def test_full_joins_add_a_product_each() -> None:
    """It reads both its sides twice, twelve the first one 2¹² times, and yet each is compiled once."""
    assert products(*CHAINS["FULL", 7]) <= 7 + 1
    assert products(*CHAINS["FULL", 13]) <= 13 + 1


def test_statements_of_outer_joins_grow_as_the_joins_do() -> None:
    """A star's views are its fact, and of each dimension its padded rows, and how many there are for each key."""
    assert statements(*STARS[7]) == 6 * 6 + 2
    assert statements(*STARS[13]) == statements(*FLAKE) - 9 == 6 * 12 + 2
    kept = {f"M_N{2 * i}" for i in range(1, 7)} | {f"G_N{i}" for i in range(1, 13)}
    assert {view.name for view in program(*STARS[7]).views} == {"Q", "M_T0", *kept}


def test_bags_have_what_is_read() -> None:
    """The padded rows of a dimension: what they are joined by, and what is selected."""
    padded = [aux.view for aux in program(*STARS[7]).auxiliary if aux.output.is_bag]
    assert [tuple(key.name for key in view.keys) for view in padded] == [("k", "v")] * 6


def test_sums_that_are_joined_are_auxiliary_relations() -> None:
    """Six unions of two, joined with each other, would be 2⁶ products: all but the first are auxiliary relations."""
    names = [f"u{i}" for i in range(12)]
    relations = "".join(f"CREATE STREAM {n} (k INT, v INT) USING csv OPTIONS (path '{n}');\n" for n in names)
    unions = [f"(SELECT * FROM u{i} UNION ALL SELECT * FROM u{i + 1}) x{i}" for i in range(0, 12, 2)]
    joined = " ".join(f"JOIN {union} ON x{2 * i}.k = x0.k" for i, union in enumerate(unions) if i)
    assert products(f"SELECT x0.v, COUNT(*) FROM {unions[0]} {joined} GROUP BY x0.v", relations) == 2


def test_disjunctions_of_ranges_are_multiplied_out_up_to_some() -> None:
    """Each is three products, and all of them as filters beside the first three would be."""
    relations = "".join(f"CREATE STREAM {n} (a INT, b INT) USING csv OPTIONS (path '{n}');\n" for n in "rs")
    apart = " AND ".join(f"(r.a > s.b + {i} OR r.a < s.b - {i})" for i in range(1, 9))
    assert products(f"SELECT COUNT(*) FROM r, s WHERE {apart}", relations) == 3**3
