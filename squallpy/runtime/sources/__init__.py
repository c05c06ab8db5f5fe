"""Files → Arrow tables of rows, by row number: any range of any columns, at any time, in any process.

open_source(relation, base)  →  FileSource   .rows   .read(start, stop, columns)   picklable
infer_fields(relation, base) →  the columns of a relation that is declared without columns

source   the files of a relation as one range of rows, by the readers of `runtime/formats`
replay   the rows of each micro-batch
"""

from squallpy.catalog.relation import MULT
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.sources.source import FileSource, infer_fields, open_source

__all__ = ["MULT", "FileSource", "SkippedRows", "infer_fields", "open_source", "skipped"]
