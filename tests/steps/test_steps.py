"""Every step test on the local executor, with the optimizer on and off."""

from pathlib import Path

import pytest

from squallpy.testing.engines import LocalEngine
from squallpy.testing.steps import run_steps

KNOWN = {"decimals_wide": "the ledger of a change stream takes no DECIMAL of more than 18 digits"}


def known(path: Path) -> object:
    """A file as a parameter, expected to fail if it is among those that are known to."""
    marks = [pytest.mark.xfail(reason=KNOWN[path.stem], strict=True)] if path.stem in KNOWN else []
    return pytest.param(path, id=path.stem, marks=marks)


FILES = sorted(Path(__file__).parent.glob("*.slt"))


@pytest.mark.parametrize("optimizer", [True, False], ids=["optimized", "plain"])
@pytest.mark.parametrize("path", map(known, FILES))
def step_local(path: Path, optimizer: bool, tmp_path: Path) -> None:
    run_steps(path, LocalEngine(optimizer), tmp_path)
