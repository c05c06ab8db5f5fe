"""CREATE STREAM and CREATE TABLE, as parsed by `grammar/script.lark`, → Relation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TYPE_CHECKING

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import Kind, Shape, Type, nested_type
from squallpy.catalog.catalog import qualify_name
from squallpy.catalog.connector_options import CONNECTORS, DEBEZIUM
from squallpy.catalog.format_options import (
    ARROW,
    DEAD_LETTER,
    FORMATS,
    HTTP,
    INTERVALS,
    OPTIONS,
    RANDOM,
    SOCKET,
    STORED,
    check_format,
    check_option,
    required_options,
    row_format,
)
from squallpy.catalog.relation import METADATA, Field, ForeignKey, Relation
from squallpy.frontend.grammars import Parsed
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.statements import CreateRelation
from squallpy.frontend.string_literals import unquote
from squallpy.frontend.type_names import declared_type
from squallpy.frontend.unsupported import CLAUSES

if TYPE_CHECKING:
    from lark import Token

MICROS = {"MS": 1_000, "MILLISECOND": 1_000, "SEC": 1_000_000, "S": 1_000_000, "SECOND": 1_000_000,
          "MIN": 60_000_000, "MINUTE": 60_000_000, "H": 3_600_000_000, "HOUR": 3_600_000_000,
          "D": 86_400_000_000, "DAY": 86_400_000_000}  # fmt: skip


def token_span(script: ScriptText, token: "Token") -> Span:
    assert token.start_pos is not None and token.end_pos is not None
    return script.span(token.start_pos, token.end_pos)


def name_of(tree: Parsed) -> str:
    """Read the name in a `name` node: a or `a`; a backquote in it is written twice"""
    return unquote_name(tree.children[0])


def unquote_name(token: "Token") -> str:
    return token[1:-1].replace("``", "`") if token.startswith("`") else str(token)


def relation_name(script: ScriptText, tree: Parsed) -> str:
    """Read the name in a `qualified` node, in its schema: a, s.a or s.`a`; SQ3001 for one in a catalog."""
    *schema, name = (unquote_name(token) for token in tree.children)
    if len(schema) > 1:
        construct = CLAUSES["Table.catalog"]
        span = token_span(script, tree.children[0])
        raise SquallError("SQ3001", f"{construct.name} is not supported yet", span, construct.hint)
    return qualify_name(schema[0], name) if schema else name


@dataclass(slots=True)
class Columns:
    """The column list of a declaration while it is read."""

    fields: list[Field] = field(default_factory=list)
    key: list[tuple[str, Span]] = field(default_factory=list)
    references: list[ForeignKey] = field(default_factory=list)


def declare(script: ScriptText, tree: Parsed) -> CreateRelation:
    """Read a `create_relation` tree; raises SQ2007, SQ2003, SQ7002 and others at their tokens."""
    _, kind, _, name, columns, source, options, timestamp, stored = tree.children
    called, name_span = relation_name(script, name), token_span(script, name.children[-1])
    read = read_columns(script, columns) if columns else Columns()
    with at(token_span(script, source.children[0])):
        format = check_format(name_of(source))
    kept = read_options(script, format, options) if options else {}
    kept |= {STORED: "true"} if stored else {}
    if enveloped := DEBEZIUM.get(kept.get("format", "")):
        kept |= {"format": enveloped, "changelog": "debezium"}
    with at(name_span):
        name_changes(kept)
    needed = required_options(format)
    if needed and not {*needed} & {*kept}:
        raise SquallError("SQ7002", f'"{called}" has no {needed[0]}', name_span, f"write OPTIONS ({needed[0]} '...')")
    fields, rows = mark_keys(read), row_format(format, kept)
    for option, role in (("op", "operation"), ("tombstone", "tombstone")):
        if any(f.name.lower() == kept.get(option, "").lower() for f in fields):
            message = f'"{kept[option]}" is the {role} column and cannot be declared as well'
            raise SquallError("SQ2007", message, name_span)
    column, delay = read_timestamp(script, timestamp, fields) if timestamp else (None, 0)
    if rows == "csv" and (nested := next((f for f in fields if f.nested and not f.metadata), None)):
        why = f'column "{nested.name}" has a FROM, which is for json, parquet and avro, not for {format}'
        raise SquallError("SQ3001", why, name_span, "name it as the file does")
    if rows == "csv" and (nested := next((f for f in fields if f.type.nested), None)):
        why = f'column "{nested.name}" is {nested.type}, for which csv has no values'
        raise SquallError("SQ3001", why, name_span, "declare it VARCHAR, or use json or parquet")
    stream = kind.children[0].type == "STREAM"
    if format in (SOCKET, HTTP):
        with at(name_span):
            check_received(format, kept, stream)
    if format in CONNECTORS and not stream:
        connector = CONNECTORS[format]
        if follows := next((name for name in kept if name in connector.source and name not in connector.tables), None):
            message = f'option "{follows}" is for a STREAM, and a TABLE is read once'
            raise SquallError("SQ7002", message, name_span, "declare a STREAM, or remove it")
    if stored and not stream:
        raise SquallError("SQ7002", "a TABLE does not change and is not STORED", name_span, "leave it out")
    if (kept.get("op") or kept.get("changelog")) and not stream:
        what = "op column" if kept.get("op") else "changelog"
        raise SquallError("SQ7002", f"a TABLE does not change and has no {what}", name_span, "declare a STREAM")
    with at(name_span):
        check_changes(kept, "json" if format in CONNECTORS else rows, read)  # NB: messages of Avro are enveloped, too
    files = kept if format in FORMATS else {}  # NB: options of other sources are theirs
    if files.get("watch") == "true" and not stream:
        raise SquallError("SQ7002", "a TABLE does not change and is not watched", name_span, "declare a STREAM")
    with at(name_span):
        check_order(files, stream)
    for limit in ("maxFilesPerTrigger", "maxBytesPerTrigger") if files.get("watch") != "true" else ():
        if limit.lower() in files:
            message = f"{limit} is for a stream that is watched"
            raise SquallError("SQ7002", message, name_span, "write OPTIONS (watch 'true')")
    with at(name_span):
        check_message_keys(kept, format, fields)
        check_times(kept, format, stream, column)
        check_dead_letters(kept)
    written = {key.lower() for key, _ in read.key}
    primary_key = tuple(f.name for f in fields if f.name.lower() in written)
    references = tuple(mark_reference(reference, fields) for reference in read.references)
    relation = Relation(called, fields, stream, format, kept, primary_key, references, column, delay, name_span)
    return CreateRelation(relation.with_changes if fields else relation, name_span)


def check_received(format: str, options: Mapping[str, str], stream: bool) -> None:
    """Raise SQ7002 for a socket without a host, what is received as a TABLE, or options of csv beside other formats."""
    what, rows = "a socket" if format == SOCKET else "http", row_format(format, options)
    if not stream:
        raise SquallError("SQ7002", f"a TABLE does not change and is not read from {what}", hint="declare a STREAM")
    if format == SOCKET and "host" not in options:
        raise SquallError("SQ7002", "a socket needs a host", hint="write OPTIONS (host 'localhost')")
    if rows != "csv" and (option := next((o for o in options if OPTIONS.get(o, "").startswith("csv")), None)):
        raise SquallError("SQ7002", f'option "{option}" is for csv, not for {rows}', hint="remove it")
    if rows == ARROW and options.get("on_error", "fail") != "fail":
        hint = "leave it out: a request with rows that cannot be read is refused as a whole"
        raise SquallError("SQ7002", f"on_error '{options['on_error']}' is for csv and json, not for {ARROW}", hint=hint)


def check_order(options: Mapping[str, str], stream: bool) -> None:
    """Raise SQ7002 for a random order of rows that are read at once, change others or have no end, and a seed alone."""
    if options.get("order") != RANDOM:
        if "seed" in options:
            raise SquallError("SQ7002", "a seed is for rows in a random order", hint="write OPTIONS (order 'random')")
        return
    if not stream:
        raise SquallError("SQ7002", "a TABLE is read at once, in no order", hint="declare a STREAM, or remove it")
    if other := next((name for name in ("op", "changelog", "watch") if options.get(name, "false") != "false"), None):
        message = f"order 'random' is for files with an end, whose rows only come: not beside {other}"
        raise SquallError("SQ7002", message, hint=f"remove order, or {other}")


def check_dead_letters(options: Mapping[str, str]) -> None:
    """Raise SQ7002 if one of on_error 'dead-letter' and its file is without the other."""
    if "dead_letter" in options and options.get("on_error") != DEAD_LETTER:
        message = "dead_letter names a file for rows that cannot be read"
        raise SquallError("SQ7002", message, hint="write OPTIONS (on_error 'dead-letter')")
    if options.get("on_error") == DEAD_LETTER and not options.get("dead_letter"):
        message = "on_error 'dead-letter' needs a file"
        raise SquallError("SQ7002", message, hint="write OPTIONS (dead_letter 'rows.jsonl')")


def check_message_keys(options: Mapping[str, str], format: str, fields: Sequence[Field]) -> None:
    """Raise SQ2003 if `key` names a column that messages do not have; those of a schema are known later."""
    if format not in CONNECTORS or not CONNECTORS[format].messages or not fields:
        return
    known = [field.name for field in fields]
    for name in filter(None, map(str.strip, options.get("key", "").split(","))):
        if name.lower() not in map(str.lower, known):
            raise SquallError("SQ2003", f'option "key" names no column: "{name}"', hint=nearest(name, known))


def check_times(options: Mapping[str, str], format: str, stream: bool, timestamp: str | None) -> None:
    """Raise SQ7002 for limits of processing time where it moves nothing."""
    for option in (each for each in INTERVALS if each in options):
        if not stream or (format in FORMATS and options.get("watch") != "true"):
            raise SquallError("SQ7002", f"{option} is for a stream without end", hint="write OPTIONS (watch 'true')")
        if timestamp is None:
            message = f"{option} is for windows over event time, and the stream has none"
            raise SquallError("SQ7002", message, hint="declare it with TIMESTAMP BY")


def check_changes(options: Mapping[str, str], format: str, read: "Columns") -> None:
    """Raise SQ7002 if a `changelog` does not suit the format, or lacks columns or a key."""
    match options.get("changelog"):
        case "upsert" if not read.key:
            message = "changelog 'upsert' needs a PRIMARY KEY, by which rows replace each other"
            raise SquallError("SQ7002", message, hint="declare one: id BIGINT PRIMARY KEY, or PRIMARY KEY (a, b)")
        case "debezium" if format != "json":
            message = f"changelog 'debezium' is for json, not for {format}"
            raise SquallError("SQ7002", message, hint="write USING json, or changelog 'op' for rows with an operation")
        case "debezium" if any(field.metadata for field in read.fields):
            name = next(field.metadata for field in read.fields if field.metadata)
            raise SquallError("SQ3001", f"{name} of Debezium's envelopes is not supported yet", hint="leave it out")
        case "debezium" if not read.fields and options.get("format") != "avro":
            message = "changelog 'debezium' needs columns, those of the rows in its envelopes"
            raise SquallError("SQ7002", message, hint="list the columns after the name")


@contextmanager
def at(span: Span) -> Iterator[None]:
    """Give errors raised inside the span, unless they have one."""
    try:
        yield
    except SquallError as error:
        raise error.at(span) from None


def read_columns(script: ScriptText, tree: Parsed) -> Columns:
    read = Columns()
    for item in tree.children:
        span = token_span(script, next(iter(item.scan_values(lambda _: True))))
        match item.data:
            case "column":
                read_column(script, item, span, read)
            case "primary_key":
                if read.key:
                    raise SquallError("SQ2007", "PRIMARY KEY is given twice", span)
                read.key = [(name_of(n), token_span(script, n.children[0])) for n in item.children]
            case _:
                names, references = item.children
                read.references.append(read_reference(script, names_of(names), references))
    return read


def read_column(script: ScriptText, tree: Parsed, span: Span, read: Columns) -> None:
    name, type_tree, origin, *constraints = tree.children
    if any(f.name.lower() == name_of(name).lower() for f in read.fields):
        raise SquallError("SQ2007", f'column "{name_of(name)}" is declared twice', span)
    type = read_type(script, type_tree)
    for constraint in constraints:
        if constraint.data == "references":
            read.references.append(read_reference(script, (name_of(name),), constraint))
        if constraint.data == "key":
            if read.key:
                raise SquallError("SQ2007", "PRIMARY KEY is given twice", span)
            read.key = [(name_of(name), span)]
    nullable = all(constraint.data in ("may_be_null", "references") for constraint in constraints)
    nested = tuple(unquote(origin.children[0]).split(".")) if origin else ()
    if not all(nested):
        message = "FROM names the fields that lead to a value, with a . between them"
        raise SquallError("SQ1001", message, token_span(script, origin.children[0]), "such as FROM 'address.zip'")
    field = Field(name_of(name), type, nullable, nested)
    if field.metadata and type != METADATA[field.metadata]:
        message = f'"{field.metadata}" is {METADATA[field.metadata]}, not {type}'
        raise SquallError("SQ2005", message, span, "it tells where a row is from")
    read.fields.append(field)


def read_type(script: ScriptText, tree: Parsed) -> Type:
    """Read a type, ARRAY<STRUCT<a INT, b VARCHAR>>, DECIMAL(8,2) or another plain one."""
    head, *inner = tree.children
    if tree.data == "plain":
        with at(token_span(script, head)):
            return declared_type(str(head), [int(p) for p in inner if p is not None])
    names, types = [], []
    for part in inner:
        if part.data == "column_name":
            names.append(name_of(part))
        else:
            types.append(read_type(script, part))
    if twice := next((name for name in names if [n.lower() for n in names].count(name.lower()) > 1), None):
        raise SquallError("SQ2007", f'field "{twice}" is declared twice', token_span(script, head))
    return nested_type(Shape[head.upper()], types, names)


def read_reference(script: ScriptText, fields: tuple[str, ...], tree: Parsed) -> ForeignKey:
    word, name, *keys = tree.children
    return ForeignKey(fields, relation_name(script, name), names_of(keys[0]) if keys else (), token_span(script, word))


def names_of(tree: Parsed) -> tuple[str, ...]:
    return tuple(name_of(name) for name in tree.children)


def mark_reference(reference: ForeignKey, fields: tuple[Field, ...]) -> ForeignKey:
    """Name the fields of a reference as they are declared."""
    names = {f.name.lower(): f.name for f in fields}
    for name in reference.fields:
        if name.lower() not in names:
            raise SquallError("SQ2003", f'unknown column "{name}"', reference.span, nearest(name, names.values()))
    return replace(reference, fields=tuple(names[name.lower()] for name in reference.fields))


def mark_keys(read: Columns) -> tuple[Field, ...]:
    """Make the fields of the primary key NOT NULL."""
    names = {f.name.lower(): f for f in read.fields}
    for key, span in read.key:
        if key.lower() not in names:
            raise SquallError("SQ2003", f'unknown column "{key}"', span, nearest(key, [f.name for f in read.fields]))
    keys = {key.lower() for key, _ in read.key}
    return tuple(replace(f, nullable=f.nullable and f.name.lower() not in keys) for f in read.fields)


def read_options(script: ScriptText, format: str, tree: Parsed) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, value, span in written_options(script, tree):
        with at(span):
            name, text = check_option(format, key, value, options)
        options[name] = text
    return options


def written_options(script: ScriptText, tree: Parsed) -> Iterator[tuple[str, str, Span]]:
    """List names and values in OPTIONS (…), each with the place of its name."""
    for option in tree.children:
        key, value_tree = option.children
        value = value_tree.children[0]
        text = unquote(value) if value.type == "STRING" else str(value)
        yield unquote(key) if key.type == "STRING" else str(key), text, token_span(script, key)


def name_changes(options: dict[str, str]) -> None:
    """Resolve `changelog`, with a `tombstone`, in options; SQ7002 for those that do not go together.

    changelog 'append'  →  nothing        changelog 'op'  →  op 'op'
    """
    if "changelog" in options and "op" in options:
        message = f"changelog '{options['changelog']}' and op '{options['op']}' both say how rows tell changes"
        raise SquallError("SQ7002", message, hint="leave one of them out")
    if "tombstone" in options and options.get("changelog") != "upsert":
        raise SquallError("SQ7002", "tombstone is for upserts", hint="write OPTIONS (changelog 'upsert')")
    match options.get("changelog"):
        case "append":
            del options["changelog"]
        case "op":
            options["op"] = options.pop("changelog")


def read_timestamp(script: ScriptText, tree: Parsed, fields: tuple[Field, ...]) -> tuple[str, int]:
    """Read the event time: the column, checked if columns are declared, and the delay in µs."""
    name, delay = tree.children
    span = token_span(script, name.children[0])
    check_timestamp(name_of(name), fields, span)
    if delay is None:
        return name_of(name), 0
    return name_of(name), micros(script, *delay.children)


def micros(script: ScriptText, amount: "Token", unit: "Token") -> int:
    """Convert a duration to microseconds: 5 SEC, '5' SECONDS → 5_000_000"""
    number = whole_amount(script, amount)
    factor = MICROS.get(unit.upper()) or MICROS.get(unit.upper().removesuffix("S"))
    if factor is None:
        known = ("MS", "SEC", "MIN", "HOUR", "DAY")
        raise SquallError("SQ1001", f'unknown unit "{unit}"', token_span(script, unit), nearest(unit, known))
    return number * factor


def whole_amount(script: ScriptText, amount: "Token") -> int:
    """Read the whole number that a token is, or the text in it; SQ1001 for any other."""
    text = unquote(amount) if amount.type == "STRING" else str(amount)
    found = re.fullmatch(r"\s*\+?\s*([0-9]{1,40})\s*", text)  # NB: Python reads no more than 4300 digits
    if found is None:
        raise SquallError("SQ1001", f"{amount} is not a whole number", token_span(script, amount))
    return int(found[1])


def check_timestamp(name: str, fields: tuple[Field, ...], span: Span | None) -> None:
    """Check that the event time column exists and is a TIMESTAMP or DATE; skipped while fields are to be inferred."""
    if not fields:
        return
    field = next((f for f in fields if f.name.lower() == name.lower()), None)
    if field is None:
        raise SquallError("SQ2003", f'unknown column "{name}"', span, nearest(name, [f.name for f in fields]))
    if field.type.kind not in (Kind.TIMESTAMP, Kind.DATE):
        raise SquallError("SQ2005", f'TIMESTAMP BY needs a TIMESTAMP or DATE, "{name}" is {field.type}', span)
