"""Marks that tests share."""

import pytest
from _pytest.mark.structures import ParameterSet


def long(*values: object) -> ParameterSet:
    """Mark a parameter as one that only `make long` runs."""
    return pytest.param(*values, marks=pytest.mark.long)
