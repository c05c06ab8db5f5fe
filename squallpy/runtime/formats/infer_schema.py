"""Inference of a delimited file's columns: names from the header, types from the first rows.

name,n,at                     →   name VARCHAR, n BIGINT, at DATE
a,17,2024-05-01
"""

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.types import BIGINT, VARCHAR, Kind, Type, decimal
from squallpy.catalog.relation import Field
from squallpy.runtime.evaluate.text_column_casts import parse_texts
from squallpy.runtime.formats.csv import CsvPart
from squallpy.runtime.formats.type_conversion import sql_type

SAMPLE = 20_000  # rows


def infer_csv(part: CsvPart) -> tuple[Field, ...]:
    """Infer types from a sample as Arrow does, but DECIMAL(38,0) for integers beyond BIGINT, not DOUBLE."""
    if not part.rows:
        return tuple(Field(name, VARCHAR) for name in part.names)
    sample = part.sample(SAMPLE)
    texts = part.sample(SAMPLE, pa.string())
    return tuple(Field(n, _type(sample.column(i), texts.column(i))) for i, n in enumerate(part.names))


def _type(inferred: pa.ChunkedArray, texts: pa.ChunkedArray) -> Type:
    type = sql_type(inferred.type) or VARCHAR
    if type.is_integer:
        type = BIGINT
    elif type.kind is Kind.DOUBLE and pc.all(pc.match_substring_regex(texts, r"^\s*-?\d{1,38}\s*$")).as_py():
        type = decimal(38, 0)
    # NB: Arrow parses 0x1F as a number
    values = [parse_texts(chunk, type) for chunk in texts.chunks]
    return type if sum(v.null_count for v in values) == texts.null_count else VARCHAR
