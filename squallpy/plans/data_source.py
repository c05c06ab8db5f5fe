"""Data sources: the streams and tables that a plan reads."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import scheme_of
from squallpy.base.pinned_component import HASH, PinnedComponent
from squallpy.catalog.format_options import FORMATS
from squallpy.catalog.relation import Field, Relation
from squallpy.frontend.declaration_text import declaration_text
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateRelation
from squallpy.logical.bind import check_fields, complete
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.from_clause import scan
from squallpy.logical.bind.scope import FromItem, Scope
from squallpy.plans.component import Bound, Component, Texts, as_texts


class DataSource(Component):
    """A stream, or a table, of which each row is read once.

    DataSource("orders", path="orders.csv", schema={"id": "BIGINT NOT NULL", "total": "DECIMAL(12,2)"})

    Args:
        relation: The name of the stream.
        path: Its files, found from the folder of the file that says so.
        schema: Columns with their types in SQL; without any, the files have them.
        using: The format, by default that of the path.
        table: Read whole before the first batch.
        options: Those of CREATE STREAM.
        parallelism: Tasks that read it.
        name: The qualifier of its columns, by default the relation's name.
    """

    def __init__(
        self,
        relation: str,
        path: str | Path | None = None,
        schema: Mapping[str, str] | None = None,
        *,
        using: str | None = None,
        table: bool = False,
        primary_key: Texts = (),
        timestamp_by: str | None = None,
        delay: str | None = None,
        options: Mapping[str, str] | None = None,
        parallelism: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name or relation)
        self.parallelism = parallelism
        self.read_choices(None, None, parallelism, (HASH,))
        given = {} if path is None else {"path": found_path(str(path), self.site.folder)}
        text = declaration_text(
            relation,
            "TABLE" if table else "STREAM",
            schema or {},
            using or format_of(str(path)),
            given | dict(options or {}),
            as_texts(primary_key),
            timestamp_by,
            delay,
        )
        self.relation = self._declare(text)

    def pinned(self) -> PinnedComponent | None:
        tasks = self.parallelism
        return PinnedComponent(self.kind, self.name, (), (self.relations,), parallelism=tasks) if tasks else None

    @property
    def relations(self) -> tuple[str, ...]:
        return (self.relation.name,)

    def _declare(self, text: str) -> Relation:
        try:
            (statement,) = parse_script(text, "")
            assert isinstance(statement, CreateRelation)
            relation = complete(statement.relation, self._infer)
            return replace(check_fields(relation), span=self.site.span())
        except SquallError as error:
            raise self.error(error.code, error.message, error.hint) from None

    def _infer(self, relation: Relation) -> tuple[Field, ...]:
        """Read the columns of the files."""
        from squallpy.runtime.sources import infer_fields

        return infer_fields(relation, self.site.folder)

    def bind(self, ctx: Context) -> Bound:
        node = scan(ctx, self.relation, self.name)
        return Bound(node, Scope([FromItem(self.name, node.output)]))


def found_path(path: str, folder: Path) -> str:
    """Find a path from a folder; a URI stays as it is, and so does a / at the end."""
    found = path if scheme_of(path) else str(folder / Path(path).expanduser())
    return f"{found}/" if path.endswith("/") and not found.endswith("/") else found


def format_of(path: str) -> str:
    """Tell the format of files by their suffix: orders.csv.gz  →  csv"""
    suffixes = [suffix.removeprefix(".") for suffix in Path(path.rstrip("*/")).suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix in FORMATS), "csv")
