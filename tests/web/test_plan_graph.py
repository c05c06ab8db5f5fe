"""The picture of plans: lines join boxes that are there, and each view has one that fills it."""

import json
from pathlib import Path

import pytest

from squallpy.script_session import ScriptSession
from squallpy.testing.goldens import list_scripts
from squallpy.web.catalogue import describe

SCRIPTS = {f"{path.parent.name}/{path.stem}": path for path in list_scripts()}


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name.endswith(("/vwap", "/q17", "/ols", "/example_3_3"))])
def test_every_view_is_changed_by_something(name: str) -> None:
    session = ScriptSession(Path(SCRIPTS[name]))
    queries = tuple(session.script.queries)
    plan = session.compile(queries, 1, {}).plan
    found = describe(name, session.script.relations.values(), queries, plan, session.settings)
    nodes, edges = found["graph"]["nodes"], found["graph"]["edges"]
    ids = [node["id"] for node in nodes]
    assert len(ids) == len(set(ids))
    assert {edge[end] for edge in edges for end in ("from", "to")} <= set(ids)
    filled = {edge["to"] for edge in edges if edge["kind"] != "reads"}
    assert filled == {node["id"] for node in nodes if node["kind"] not in ("stream", "table")}
    assert "ON UPDATE" in found["triggers"]
    assert ("MATRIX PROGRAM" in found["triggers"]) == name.endswith("/ols")
    assert json.loads(json.dumps(found))["graph"]["nodes"] == nodes
