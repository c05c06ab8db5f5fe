"""What Spark's streaming SQL says to the queries of docs/from_spark.md: their modes, messages and error classes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PySparkException

from squallpy.logical.bind import compile_script

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from_spark.md").read_text(encoding="utf-8")
VERSION = ".".join(pyspark.__version__.split(".")[:2])
TYPES = {"VARCHAR": "STRING"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A query of the page: the modes that have it, and what Spark says in the others."""

    title: str
    query: str
    modes: set[str]
    message: str
    condition: str


def read_page() -> tuple[str, list[Refusal]]:
    """Read the streams of the page, and its queries."""
    versions = [cell.strip() for cell in PAGE.split("\n| ", 1)[1].split("\n")[0].strip("| ").split("|")]
    streams, found = "", list[Refusal]()
    for section in PAGE.split("\n## ")[1:]:
        title, rest = section.split("\n", 1)
        told = re.search(r"Spark: “(.*?)” \(`(\w+(?:\.\w+)*)`\)", " ".join(rest.split()))
        script = re.findall(r"```sql\n(.*?)```", rest, re.DOTALL)[0]
        streams, query = script.rsplit("\n\n", 1) if script.startswith("CREATE") else (streams, script)
        row = re.search(rf"^\| \[{title}\]\(.*?\)(.*)\|$", PAGE, re.MULTILINE)
        assert row
        cells = dict(zip(versions[1:], row[1].strip("| ").split(" | "), strict=True))
        modes = set(cells.get(VERSION, cells[versions[-1]]).split(", ")) - {"none"}
        found.append(Refusal(title, query.strip().rstrip(";"), modes, *(told.groups() if told else ("", ""))))
    return streams, found


STREAMS, REFUSALS = read_page()


@pytest.fixture(scope="module")
def session(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with the streams of the page, each a folder with its file."""
    cluster.session.conf.set("spark.sql.shuffle.partitions", "1")
    script = compile_script(STREAMS, "streams", lambda relation: ())
    for relation in script.relations.values():
        folder, file = tmp_path_factory.mktemp(relation.name), ROOT / relation.options["path"]
        (folder / file.name).write_bytes(file.read_bytes())
        schema = ", ".join(f"{f.name} {TYPES.get(str(f.type), f.type)}" for f in relation.fields)
        reader = cluster.session.readStream if relation.stream else cluster.session.read
        reader.schema(schema).csv(str(folder)).createOrReplaceTempView(relation.name)
    yield cluster.session
    cluster.session.conf.unset("spark.sql.shuffle.partitions")


def test_the_page_has_refusals() -> None:
    assert len(REFUSALS) == 22 and sum(bool(each.message) for each in REFUSALS) == 21


@pytest.mark.parametrize("refusal", REFUSALS, ids=[each.title for each in REFUSALS])
def golden_refusals(session: Any, refusal: Refusal) -> None:
    said = {}
    for mode in ("append", "update", "complete"):
        try:
            writer = session.sql(refusal.query).writeStream.outputMode(mode).trigger(availableNow=True)
            query = writer.foreachBatch(lambda rows, _: rows.collect()).start()
            assert query.awaitTermination(300)
            if error := query.exception():
                raise error
        except PySparkException as error:
            said[mode] = f"{error.getCondition()}: {error}"
    assert said.keys() == {"append", "update", "complete"} - refusal.modes, said
    wanted = [refusal.condition, refusal.message]
    assert any(all(text in told for text in wanted) for told in said.values()), said
