"""Whole programs: what Fig. 5 of the paper shows of Q3, and the stages of Table 3 for all of TPC-H."""

import re
from typing import Any

import pytest

from squallpy.physical.distribute.distributed_program import DistributionOptions, distribute
from squallpy.physical.distribute.location_tags import EVERYWHERE
from squallpy.physical.distribute.placement_search import choose_placements
from squallpy.physical.distribute.single_transformer import Derivation
from squallpy.program.trigger_program import TriggerProgram
from squallpy.script_session import ScriptSession
from squallpy.testing.goldens import ROOT, ROWS

KEYS = ("orderkey", "custkey", "partkey", "suppkey")  # most values first


def session_of(number: int) -> ScriptSession:
    return ScriptSession(ROOT / "examples" / "tpch" / f"q{number}.sql")


def program_of(number: int) -> TriggerProgram:
    session = session_of(number)
    (query,) = session.script.queries
    return session.compile(query, 1, {}).program


def by_rule(program: TriggerProgram) -> dict[str, Any]:
    """The paper's places: by the primary key of a base table with most values, if there is one in the schema."""
    places: dict[str, Any] = {}
    for view in program.views[1:]:
        found = [i for key in KEYS for i, v in enumerate(view.keys) if v.name.endswith(key)]
        places[view.name] = (found[0],) if found else EVERYWHERE
    return places


def golden_figure_5() -> None:
    """The paper's program has 10 local and 12 distributed blocks before fusion, and 2 of each after it."""
    program = program_of(3)
    places = by_rule(program)

    def exchanges_and_stages(**switches: bool) -> tuple[int, int]:
        moves = [block.moves for block in distribute(program, places, DistributionOptions(**switches))]
        return moves.count(True), moves.count(False)

    assert exchanges_and_stages(rules=False, shares_subexpressions=False, fuses_blocks=False) == (12, 13)
    assert exchanges_and_stages(shares_subexpressions=False, fuses_blocks=False) == (12, 12)
    assert exchanges_and_stages(fuses_blocks=False) == (7, 12)
    assert exchanges_and_stages() == (2, 2)


@pytest.mark.parametrize("query", range(1, 23))
def golden_no_more_stages_than_table_3(query: int) -> None:
    (limit,) = map(int, re.findall(r"(\d+) stage", session_of(query).yardstick))
    program = program_of(query)
    places = choose_placements(program, ROWS, 8)
    exchanges = sum(block.moves for block in distribute(program, places)) if places is not None else 1
    assert 1 + exchanges <= limit


def test_what_changes_the_view_of_a_nest_waits() -> None:
    """A supplier's nation is found where nations are, so the groups of parts change one exchange later: all of them."""
    program = program_of(11)
    (first, *_) = program.auxiliary
    places = choose_placements(program, ROWS, 2, {"M_NATION": (0,)})
    assert places
    blocks = distribute(program, places)
    changing = [n for n, block in enumerate(blocks) if first.source.name in block.writes]
    looking = [n for n, block in enumerate(blocks) for step in block.steps if isinstance(step, Derivation)]
    assert changing == [looking[0]] and looking[0] > 2
    adding = [step for step in blocks[looking[0]].steps if first.source.name in step.writes]
    assert len(adding) == 2
