"""What readers send: hardly more than what their deltas hold."""

from pathlib import Path

from squallpy.base.settings import parse_settings
from squallpy.runtime.batch.micro_batch import Sender
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.replay import Replay
from squallpy.script_session import ScriptSession
from squallpy.testing.tpch import TPCH

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def property_q17_sends_no_more_than_its_delta_holds(tmp_path: Path) -> None:
    folder, script = TPCH.generate_cached(0.01), tmp_path / "q17.sql"
    text = (EXAMPLES / "tpch" / "q17.sql").read_text()
    script.write_text(text.replace("(path 'data/", f"(path '{folder}/"))
    session = ScriptSession(script, parse_settings(["partitions=4"]))
    (query,) = session.script.queries
    plan = session.compile(query, 4, session.sizes).plan
    sources = {name: open_source(relation, tmp_path) for name, relation in session.script.relations.items()}
    sender, input = Sender(plan), Input(sources, Replay(session.sizes, 20_000))
    for batch in range(3):
        slices = input.whole(input.step(batch))
        share = sender.read(slices, Dictionary())
        holds = sum(delta.keys.nbytes + delta.words.nbytes for delta in share.deltas)
        sent = sum(len(message) for _, message in sender.messages(0, slices))
        assert 0 < sent <= 1.2 * holds
