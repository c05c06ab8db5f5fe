"""Rows of a part of a source, with the multiplicities that its changelog tells.

op         a column says of each row whether it comes or goes
upsert     rows come, except tombstones, with which goes what has their key
debezium   an envelope has the row that goes and the one that comes
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.catalog.relation import MULT, OPERATION, TRUNCATED, Field, Relation
from squallpy.runtime.formats.change_operations import decode_tombstones
from squallpy.runtime.formats.debezium import Envelopes
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.json_reader import NULL_LINE
from squallpy.runtime.formats.type_conversion import PROGRESS, note_nulls

if TYPE_CHECKING:
    from squallpy.runtime.sources.source import SourceFile


def read_part(
    relation: Relation, part: "SourceFile", span: tuple[int, int], fields: tuple[Field, ...], with_checksum: bool
) -> FileRows:
    """Read rows of one part, or envelopes, of which `rows_of_changes` makes rows once those at fault are left out."""
    if relation.is_debezium:
        envelopes = Envelopes(fields, relation.primary_key)
        piece = part.read(*span, envelopes.columns, None, with_checksum)
        for row in [row for row, problem in piece.wrong.items() if problem == NULL_LINE]:
            piece.wrong[row] = PROGRESS
        table = envelopes.merge(piece.table)
        envelopes.check(table, piece.wrong, piece.is_ordered)
        return replace(piece, table=table)
    if relation.tombstone is None:
        return part.read(*span, fields, relation.op, with_checksum)
    loose = (replace(f, nullable=True) for f in fields)
    piece = part.read(*span, (*loose, relation.tombstone), None, with_checksum)
    return _with_tombstones(piece, relation, relation.tombstone, fields)


def _with_tombstones(piece: FileRows, relation: Relation, tombstone: Field, fields: tuple[Field, ...]) -> FileRows:
    """Put multiplicities in the place of the last column; rows that are no tombstones have all NOT NULL columns."""
    table, told = piece.table.remove_column(len(fields)), piece.table.column(len(fields))
    if tombstone.name == OPERATION:
        mult = pc.fill_null(told, 1)  # NB: of messages only tombstones say
    elif tombstone.path[-1]:
        mult = decode_tombstones(told, tombstone.name, piece.wrong)
    else:
        mult = pc.if_else(told.is_valid(), 1, -1)
    for column, field in zip(table.columns, fields, strict=True):
        if not field.nullable and column.null_count:
            of_rows = pc.greater(mult, TRUNCATED if field.name in relation.primary_key else 0)
            note_nulls(pc.and_(column.is_null(), of_rows), field, piece.wrong)
    return replace(piece, table=table.append_column(MULT, mult))


def rows_of_changes(table: pa.Table, relation: Relation, fields: tuple[Field, ...]) -> pa.Table:
    """Return what `read_part` has read as rows."""
    return Envelopes(fields, relation.primary_key).rows(table) if relation.is_debezium else table
