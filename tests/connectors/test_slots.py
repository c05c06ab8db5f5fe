"""`squall slots`: those that runs have left behind."""

import pytest

from squallpy.terminal.cli import main
from tests.connectors.runs import Running
from tests.connectors.servers import PostgresServer


@pytest.mark.connectors
def test_slots_are_listed_and_dropped(
    postgres: PostgresServer, tmp_path: object, capfd: pytest.CaptureFixture[str]
) -> None:
    postgres.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE PUBLICATION squall FOR TABLE t")
    postgres.execute("SELECT pg_create_logical_replication_slot('squall_old', 'pgoutput')")
    postgres.execute("SELECT pg_create_logical_replication_slot('theirs', 'pgoutput')")
    text = f"CREATE STREAM t USING postgres OPTIONS (url '{postgres.url}'); SELECT COUNT(*) AS n FROM t;"
    with Running(text, tmp_path / "kept") as running:  # type: ignore[operator]
        running.wait_for(lambda: running.answers.batches > 0)
        assert main(["slots", "list", postgres.url]) == 0
        head, used, old = capfd.readouterr().out.splitlines()
        assert head == "name,active,held_bytes,confirmed"
        assert used.startswith("squall,true,") and old.startswith("squall_old,false,")
        for name, says in (
            ("squall", "is in use"),
            ("theirs", "whose name begins with squall"),
            ("squal_old", "did you"),
        ):
            assert main(["slots", "drop", postgres.url, name, "--yes"]) == 2
            assert says in capfd.readouterr().err
        assert main(["slots", "drop", postgres.url, "squall_old"]) == 2  # NB: there is nobody to ask
        assert "give --yes" in capfd.readouterr().err
        assert main(["slots", "drop", postgres.url, "squall_old", "--yes"]) == 0
    names = {name for (name,) in postgres.execute("SELECT slot_name FROM pg_replication_slots")}
    assert names == {"squall", "theirs"}
