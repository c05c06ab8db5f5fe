"""Views of recursive queries in a session whose program changes while they are kept fresh."""

import squallpy

REACH = "WITH RECURSIVE r AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM r JOIN edge e ON r.y = e.x)"


def test_a_fixpoint_goes_on_in_a_program_with_more_views() -> None:
    """Its tables are held under another name, and deletes find them."""
    with squallpy.connect() as s:
        s.stream("edge", schema={"x": "INT", "y": "INT"}, stored=True)
        s.sql(f"CREATE MATERIALIZED VIEW reach AS {REACH} SELECT x, y FROM r")
        s.push("edge", [{"x": 1, "y": 2}, {"x": 2, "y": 3}, {"x": 3, "y": 1}])
        s.step()
        s.sql(
            "CREATE MATERIALIZED VIEW degrees AS SELECT y, COUNT(*) AS n FROM (SELECT DISTINCT * FROM edge) GROUP BY y"
        )
        s.sql(f"CREATE MATERIALIZED VIEW most AS {REACH} SELECT MAX(y) AS y, COUNT(*) AS n FROM r")
        assert s.view("most").to_pylist() == [{"y": 3, "n": 9}]
        s.push("edge", [{"x": 2, "y": 3}], op="-")
        s.push("edge", [{"x": 1, "y": 7}])
        s.step()
        pairs = sorted((row["x"], row["y"]) for row in s.view("reach").to_pylist())
        assert pairs == [(1, 2), (1, 7), (3, 1), (3, 2), (3, 7)]
        assert s.view("most").to_pylist() == [{"y": 7, "n": 5}]
        assert s.query("SELECT COUNT(*) AS n FROM reach").to_pylist() == [{"n": 5}]


def test_a_view_of_constants_needs_no_rows_of_streams_that_are_gone() -> None:
    """Also under the name of a table of its own WITH."""
    with squallpy.connect() as s:
        s.stream("edge", schema={"x": "INT", "y": "INT"})
        s.sql(f"CREATE MATERIALIZED VIEW reach AS {REACH} SELECT x, y FROM r")
        s.push("edge", [{"x": 1, "y": 2}])
        s.step()
        five = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) AS s FROM N"
        s.sql(f"CREATE MATERIALIZED VIEW n AS {five}")
        assert s.view("n").to_pylist() == [{"s": 15}]
        s.push("edge", [{"x": 2, "y": 1}])
        s.step()
        s.sql("DROP VIEW n")
        assert len(s.view("reach").to_pylist()) == 4
