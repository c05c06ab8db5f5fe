"""The catalogue of a run or a session as JSON: its entries, plan, triggers and settings."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from squallpy import __version__
from squallpy.base.settings import Settings, list_settings
from squallpy.catalog.catalog import Entry, ViewDefinition
from squallpy.catalog.relation import Field, Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.live.snapshot_query import fields_of
from squallpy.logical.nodes import Query, titles_of
from squallpy.physical.explain_text import triggers_text
from squallpy.physical.plan import Plan
from squallpy.web.plan_graph import plan_graph


def describe(
    name: str,
    entries: Iterable[Entry],
    queries: tuple[Query, ...],
    plan: Plan | None,
    settings: Settings,
    **about: object,
) -> dict[str, Any]:
    """Describe what is declared, what is kept fresh, and how.

    Args:
        name: What is shown as the title.
        queries: The queries that are kept fresh, in the order of the plan's.
        about: Facts that are shown beside the settings.
    """
    return {
        "name": name,
        "version": __version__,
        "about": {key: value for key, value in about.items() if value is not None},
        "entries": [*_entries(entries)],
        "views": [*_views(queries)],
        "graph": plan_graph(plan, queries) if plan else {"nodes": [], "edges": []},
        "triggers": _triggers(plan, queries) if plan else "",
        "partitions": plan.partitions if plan else 0,
        "settings": [*_settings(settings)],
    }


def _triggers(plan: Plan, queries: tuple[Query, ...]) -> str:
    """Show the trigger program, that of matrices first."""
    text = triggers_text(plan.program, titles_of(queries, [output for output, _ in plan.printed]))
    if plan.matrices is None:
        return text
    from squallpy.physical.matrix.explain_text import matrix_stage_text  # NB: only plans with matrices import it

    return f"{matrix_stage_text(plan.matrices, 'triggers')}\n{text}"


def _entries(entries: Iterable[Entry]) -> Iterable[Mapping[str, Any]]:
    for entry in entries:
        match entry:
            case Relation() if not entry.is_implied:
                kind = "stream" if entry.stream else "table"
                yield {"name": entry.name, "kind": kind, "format": entry.format, "columns": _columns(entry.fields)}
            case ViewDefinition():
                kind = "materialized view" if entry.is_materialized else "view"
                yield {"name": entry.name, "kind": kind, "query": entry.query.text}
            case SinkSpec():
                yield {"name": entry.name, "kind": "sink", "format": entry.format}


def _views(queries: tuple[Query, ...]) -> Iterable[Mapping[str, Any]]:
    for query in queries:
        kind = "view" if query.view else "sink" if query.sink else "query"
        yield {"name": query.name, "kind": kind, "columns": _columns(fields_of(query)), "query": query.text}


def _columns(fields: Iterable[Field]) -> list[tuple[str, str]]:
    return [(field.name, str(field.type)) for field in fields]


def _settings(settings: Settings) -> Iterable[Mapping[str, str]]:
    """List settings with their values, by the names of `squall options`."""
    by_name = {str(f.metadata["name"] or f.name): f.name for f in fields(Settings) if f.metadata}
    for option in list_settings():
        if option.name in by_name:
            value = getattr(settings, by_name[option.name])
            shown = ("on" if value else "off") if isinstance(value, bool) else str(value)
            yield {"name": option.name, "value": shown, "default": option.default, "meaning": option.meaning}
