"""A run over sources of five kinds that grow, killed a few times; `make cluster` kills more often."""

from pathlib import Path

from tests.growing import campaign


def fault_killed_while_sources_grow(tmp_path: Path) -> None:
    batches, killed = campaign(tmp_path, "local", 3, seed=3, pause=(1.0, 3.0))
    assert batches > 3 and killed == {"all": 3}
