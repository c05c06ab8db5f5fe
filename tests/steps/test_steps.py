"""Every step test on the local executor, with the optimizer on and off."""

from pathlib import Path

import pytest

from squallpy.testing.engines import LocalEngine
from squallpy.testing.steps import run_steps

FILES = sorted(Path(__file__).parent.glob("*.slt"))


@pytest.mark.parametrize("optimizer", [True, False], ids=["optimized", "plain"])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def step_local(path: Path, optimizer: bool, tmp_path: Path) -> None:
    run_steps(path, LocalEngine(optimizer), tmp_path)
