"""Connectors whose package is not installed: one line with what to install."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from squallpy.base.errors import SquallError
from squallpy.session import Session

PACKAGES = {"postgres": ("psycopg", "url"), "delta": ("deltalake", "path")}


@pytest.mark.parametrize("format", PACKAGES)
def test_a_package_that_is_missing(format: str) -> None:
    package, option = PACKAGES[format]
    ours = {name for name in sys.modules if name.startswith("squallpy.runtime.connectors")}
    without: dict[str, Any] = {name: module for name, module in sys.modules.items() if name not in ours}
    says = f"USING {format} needs the package {package}, install it: pip install 'squallpy\\[{format}\\]'"
    text = f"CREATE STREAM r USING {format} OPTIONS ({option} 'x'); SELECT * FROM r;"
    with (
        patch.dict(sys.modules, without | {package: None}, clear=True),
        pytest.raises(SquallError, match=f"SQ8009 q.sql:1:15: {says}"),
    ):
        _ = Session(Path("q.sql"), text=text).script
