"""The statements of a script."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from squallpy.base.errors import Span
from squallpy.catalog.relation import Relation

if TYPE_CHECKING:
    from squallpy.frontend.select import SelectText


@dataclass(frozen=True, slots=True)
class CreateRelation:
    """CREATE STREAM or CREATE TABLE; the relation's fields are empty where no columns were listed."""

    relation: Relation
    span: Span


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW name [(columns)] AS query."""

    name: str
    columns: tuple[str, ...]
    query: "SelectText"
    span: Span


@dataclass(frozen=True, slots=True)
class Select:
    """A query of the script."""

    query: "SelectText"


Statement = CreateRelation | CreateView | Select
