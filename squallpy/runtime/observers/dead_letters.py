"""Dead letters: rows that could not be read under OPTIONS (on_error 'dead-letter', dead_letter 'FILE'), as JSON lines.

    {"batch": 7, "stream": "r", "file": "in/1.csv", "line": 5, "code": "SQ4004", "reason": "v is empty"}

Each is written once, before its batch is committed: a resumed run removes those of the batches that it repeats. Those
of messages are messages, in a topic that keeps the number of the batch.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import output_path
from squallpy.catalog.connector_options import CONNECTORS, load_connector
from squallpy.catalog.relation import Relation
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sinks.output_file import AppendedFile


class DeadLetters(Observer):
    """An observer that adds the dead letters of each batch to the files of their streams, which it makes."""

    def __init__(self, relations: Iterable[Relation], base: Path, resumed: bool) -> None:
        named = {relation.name: relation for relation in relations if "dead_letter" in relation.options}
        self._topics = {
            name: load_connector(relation.format).open_dead_letters(relation, resumed)
            for name, relation in named.items()
            if relation.format in CONNECTORS and CONNECTORS[relation.format].messages
        }
        self._paths = {
            name: base / output_path(relation.options["dead_letter"], "dead_letter")
            for name, relation in named.items()
            if name not in self._topics
        }
        self._files = {file: AppendedFile(file) for file in dict.fromkeys(self._paths.values())}
        self._begun = False
        for name, file in self._files.items():
            file.rewrite(_text(_letters(name, file.read()) if resumed else []))

    def on_query_progress(self, report: BatchReport) -> None:
        if not self._begun:
            self._begun = True
            self._drop_repeated(report.number)
        for stream, letters in sorted(report.dead_letters.items()):
            if stream in self._topics:
                self._topics[stream].write(report.number, [json.loads(each) for each in sorted(letters)])
                continue
            told = ({"batch": report.number, "stream": stream} | json.loads(each) for each in sorted(letters))
            self._files[self._paths[stream]].append(_text(told))

    def close(self) -> None:
        """Close the files and topics."""
        for each in (*self._files.values(), *self._topics.values()):
            each.close()

    def _drop_repeated(self, number: int) -> None:
        """Drop the letters from a batch on, which are repeated."""
        for path, file in self._files.items():
            before = _letters(path, file.read())
            kept = [each for each in before if each["batch"] < number]
            if len(kept) < len(before):
                file.rewrite(_text(kept))


def _text(letters: Iterable[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in letters).encode()


def _letters(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Read the whole lines of a file of ours; a last one that a crash cut short is dropped."""
    try:
        letters = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [each for each in letters if each["batch"] >= 0]
    except (ValueError, KeyError, TypeError):
        raise SquallError("SQ7005", f"{path} is no file of dead letters of ours", hint="choose another") from None
