import importlib
import sys

import pytest

from squallpy.base.hidden_imports import hide_module


def test_a_hidden_module_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with hide_module("colorsys"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("colorsys")
    assert importlib.import_module("colorsys").ONE_THIRD == 1 / 3


def test_an_imported_module_stays_visible() -> None:
    importlib.import_module("colorsys")
    with hide_module("colorsys"):
        assert importlib.import_module("colorsys") is sys.modules["colorsys"]
