"""The page of a session that another process has: what its host tells, served where somebody asked for it."""

import json
from pathlib import Path

import httpx
import pytest

import squallpy
from squallpy import SquallError
from squallpy.terminal.ui_command import show_page

VIEW = "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n FROM r GROUP BY k"


def test_the_page_of_one_that_is_attached(tmp_path: Path) -> None:
    with (
        squallpy.connect(checkpoint=tmp_path) as host,
        squallpy.connect(checkpoint=tmp_path) as reader,
        httpx.Client(base_url=reader.serve_page("127.0.0.1:0"), timeout=120) as client,
    ):
        host.sql(f"CREATE STREAM r (k INT) USING pushed; {VIEW}")
        host.push("r", [{"k": 1}, {"k": 1}, {"k": 2}])
        host.step()
        catalogue = client.get("/catalogue").json()
        assert [each["name"] for each in catalogue["views"]] == ["v"] and catalogue["triggers"]
        assert client.get("/views/v?format=csv").text.splitlines()[1:] == ["1,2", "2,1"]
        with client.stream("GET", "/views/v/changes?snapshot=1") as changes:
            told = (json.loads(line[5:]) for line in changes.iter_lines() if line.startswith("data"))
            assert sorted(row["n"] for row in next(told)["inserts"]) == [1, 2]
            host.push("r", [{"k": 2}])
            report, change = host.step(), next(told)
            assert report and change == {
                "batch": report.number,
                "deletes": [{"k": 2, "n": 1}],
                "inserts": [{"k": 2, "n": 2}],
            }
        assert client.get("/report").json()["state"] == "running"
        assert "squall" in client.get("/metrics").text and client.get("/healthz").status_code == 200
        assert client.get("/views/w").status_code == 404
        with httpx.Client(base_url=host.serve_page("127.0.0.1:0"), timeout=120) as other:
            assert other.get("/views/v?format=csv").text == client.get("/views/v?format=csv").text
        host.close()
        assert client.get("/healthz").status_code == 503
        with pytest.raises(SquallError, match="SQ7014"):
            reader.view("v").to_arrow()


def fault_no_session_is_there(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match="there is no session at"):
        show_page(str(tmp_path / "new"), None)
    assert not (tmp_path / "new").exists()
