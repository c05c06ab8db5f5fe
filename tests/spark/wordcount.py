"""Counts words in files: the smallest job with state that must be applied exactly once. Also a program of its own.

python tests/spark/wordcount.py ROOM BATCHES     prints each batch when it is done
"""

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.runtime.spark.micro_batch_loop import StreamJob

WORDS = ("delta", "pool", "slice", "domain", "block", "epoch", "ticket")
SPLITS, PARTITIONS = 2, 3


def words(batch: int, split: int) -> list[str]:
    """The words of one split of one batch."""
    return [WORDS[(batch * batch + split + i * i) % len(WORDS)] for i in range(batch % 4 + 1)]


def expected(batches: int) -> Counter[str]:
    """What all partitions together must hold after the first `batches` batches."""
    return Counter(word for batch in range(batches) for split in range(SPLITS) for word in words(batch, split))


@dataclass
class Fault:
    """Something that goes wrong, once: a name of the file that says it has not yet."""

    room: str

    def plan(self, place: str) -> None:
        (Path(self.room) / place).touch()

    def strike(self, place: str) -> None:
        try:
            (Path(self.room) / place).unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Feed:
    fault: Fault
    wrong: int = -1

    def __call__(self, batch: int, split: int) -> Iterator[Any]:
        for at, word in enumerate(words(batch, split)):
            yield WORDS.index(word) % 2, word.encode()  # NB: the last partition gets nothing
            self.fault.strike(f"feed-{batch}-{split}-{at}")
        if batch == self.wrong and split == 1:
            raise SquallError("SQ4001", f"batch {batch} is not CSV", hint="look at it")


@dataclass
class Apply:
    room: str
    fault: Fault
    wrong: int = -1

    def __call__(self, batch: int, partition: int, stage: int, messages: list[bytes]) -> Any:
        path = Path(self.room) / f"state-{partition}.json"
        state: dict[str, Any] = (
            json.loads(path.read_text()) if path.exists() else {"batch": -1, "counts": {}, "output": []}
        )
        self.fault.strike(f"apply-{batch}-{partition}")
        if state["batch"] != batch:
            assert state["batch"] == batch - 1, f"partition {partition} at {state['batch']} got batch {batch}"
            if batch == self.wrong and partition == 1:
                raise SquallError("SQ5001", "overflow")
            counts = Counter(dict[str, int](state["counts"])) + Counter(message.decode() for message in messages)
            output = [message.decode() for message in messages]
            state = {"batch": batch, "counts": counts, "output": output}
            fresh = path.with_suffix(".new")
            fresh.write_text(json.dumps(state))
            fresh.replace(path)
        self.fault.strike(f"applied-{batch}-{partition}")
        return [(partition, json.dumps(state["output"]).encode())], ({"partition": partition},)


def job(room: Path, batches: int, wrong_feed: int = -1, wrong_apply: int = -1) -> StreamJob:
    """The job with its state and its checkpoint in `room`."""
    fault = Fault(str(room))
    apply = Apply(str(room), fault, wrong_apply)
    return StreamJob(batches, SPLITS, PARTITIONS, Feed(fault, wrong_feed), apply, str(room / "checkpoint"))


def counted(room: Path) -> Counter[str]:
    """What the partitions hold."""
    paths = room.glob("state-*.json")
    return sum((Counter(json.loads(path.read_text())["counts"]) for path in paths), Counter())


def main() -> None:
    from squallpy.runtime.spark.micro_batch_loop import run
    from squallpy.runtime.spark.spark_session import start

    def on_batch(batch: Any, outputs: Any, times: Any) -> Any:
        print(batch, flush=True)
        return True

    with start("local[2]") as cluster:
        run(cluster.session, job(Path(sys.argv[1]), int(sys.argv[2])), on_batch)


if __name__ == "__main__":
    main()
