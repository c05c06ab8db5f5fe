"""Connectors whose package is not installed: one line with what to install."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog import connector_options
from squallpy.script_session import ScriptSession

PACKAGES = {
    "postgres": ("psycopg", "url"),
    "delta": ("deltalake", "path"),
    "iceberg": ("pyiceberg", "catalog.uri"),
    "kafka": ("confluent_kafka", "kafka.bootstrap.servers"),
}


@pytest.mark.parametrize("format", PACKAGES)
def test_a_package_that_is_missing(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, option = PACKAGES[format]

    def find(name: str) -> ModuleType:
        if name.startswith(f"squallpy.runtime.connectors.{format}"):
            raise ModuleNotFoundError(name=f"{package}.inner")
        return importlib.import_module(name)

    monkeypatch.setattr(connector_options, "import_module", find)
    says = f"USING {format} needs the package {package}, install it: pip install 'squallpy\\[{format}\\]'"
    text = f"CREATE STREAM r USING {format} OPTIONS ({option} 'x'); SELECT * FROM r;"
    with pytest.raises(SquallError, match=f"SQ8009 q.sql:1:15: {says}"):
        _ = ScriptSession(Path("q.sql"), text=text).script
