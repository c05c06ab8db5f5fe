"""Sources by the name after USING that are no files: adapters, and those that packages bring as entry points.

open_foreign(relation, base)   →   ForeignSource: USING python, a connector, or a name in the group `squallpy.sources`
infer_foreign(relation, base)  →   the relation with its columns, where the script lists none
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from squallpy.base.entry_points import SOURCES, load
from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path
from squallpy.catalog.connector_options import CONNECTORS, load_connector
from squallpy.catalog.format_options import ADAPTERS, HTTP, PUSHED, SOCKET
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.arrow_rows import fields_of
from squallpy.runtime.sources.foreign_source import ForeignSource, described
from squallpy.runtime.sources.protocol import Source
from squallpy.runtime.sources.pushed_rows import PushedRows
from squallpy.runtime.sources.source import columns_of_changes

OpenSpark = Callable[[Relation], tuple[str, Source]]
"""Opens a stream of Spark's, with its name."""


def open_foreign(
    relation: Relation, base: Path, open_spark: OpenSpark, shared: dict[Any, Any] | None = None
) -> ForeignSource:
    """Open the source of a relation; modules beside the script, in the folder `base`, are found. SQ4002, SQ4008.

    Args:
        open_spark: Opens streams of Spark's.
        shared: What sources of one run have in common, such as the connection that several are read from.
    """
    try:
        if relation.format in CONNECTORS:
            located = _located(relation, base)
            source = load_connector(relation.format).open_source(located, {} if shared is None else shared)
            return source if isinstance(source, ForeignSource) else ForeignSource(relation, relation.format, source)
        if relation.format == "spark":
            return ForeignSource(relation, *open_spark(relation))
        if relation.format == SOCKET:
            from squallpy.runtime.sources.socket_source import SocketSource

            return SocketSource.open(relation)
        if relation.format == HTTP:
            from squallpy.runtime.sources.http_source import open_http

            return open_http(relation)
        if relation.format == PUSHED:
            return ForeignSource(relation, f"of rows pushed to {relation.name}", PushedRows())
        if relation.format == "python":
            return ForeignSource(relation, *_open_python(relation, base))
        return ForeignSource(relation, relation.format, _create(relation))
    except SquallError as error:
        raise error.at(relation.span) from error.__cause__


def infer_foreign(relation: Relation, base: Path) -> Relation:
    """Infer the columns of a relation that is declared without, and its key; SQ4002 if its source tells none."""
    if relation.format not in CONNECTORS:
        return replace(relation, fields=_infer_fields(relation, base))
    fields, key = load_connector(relation.format).infer(_located(relation, base))
    return replace(relation, fields=fields, primary_key=key).with_changes


def _located(relation: Relation, base: Path) -> Relation:
    """Find the folder of a relation from that of its script, else from the working directory."""
    try:
        path = local_path(relation.options.get("path", ""))
    except ValueError:
        return relation
    if path is None or "path" not in relation.options:
        return relation
    found = next((each for each in (base / path, Path.cwd() / path) if each.exists()), base / path)
    return replace(relation, options={**relation.options, "path": str(found.absolute())})


def _infer_fields(relation: Relation, base: Path) -> tuple[Field, ...]:
    if relation.format in ADAPTERS and "class" in relation.options:
        from squallpy.runtime.sources.python_source import python_fields

        return python_fields(relation, base)
    if relation.format in (SOCKET, HTTP, *ADAPTERS, PUSHED):
        schema = None
    else:
        with closing(_create(relation)) as source:
            schema = source.schema
    if schema is None:
        message = f"the source {relation.format} tells no columns"
        raise SquallError("SQ4002", message, hint="list the columns after the name")
    changes = [name.lower() for name in columns_of_changes(relation)]
    return tuple(f for f in fields_of(schema) if f.name.lower() not in changes)


def _open_python(relation: Relation, base: Path) -> tuple[str, Source]:
    """Open a data source or a generator, with its name."""
    if "generator" in relation.options:
        from squallpy.runtime.sources.generator_source import open_generator  # NB: imports PySpark, as below

        return relation.options["generator"], open_generator(relation, base)
    from squallpy.runtime.sources.python_source import open_python

    return relation.options["class"], open_python(relation, base)


def _create(relation: Relation) -> Source:
    """Create a source that a package brings."""
    made: Any = load(SOURCES, relation.format)
    try:
        source = made(relation)
    except SquallError:
        raise
    except Exception as error:
        message = f"the source {relation.format} raised {described(error, getattr(made, '__name__', 'it'))}"
        raise SquallError("SQ4008", message) from error
    if not isinstance(source, Source):
        message = f"{made.__module__}.{made.__qualname__} makes a {type(source).__name__}, which is no source"
        raise SquallError("SQ4008", message, hint="derive it from squallpy.runtime.sources.protocol.Source")
    return source
