"""Sources: offsets on the driver, slices of Arrow tables in any process.

protocol        what a source is, as a stranger implements it
foreign_source  those of strangers, kept to it; registry finds them by the name after USING
python_source   data sources that are written for PySpark
received_source rows that come once, of a generator or a socket; http_source those that are POSTed, to a push_server

Files are rows by number: any range of any columns, at any time, in any process.

open_source(relation, base)  →  FileSource   .rows   .read(start, stop, columns)   picklable
infer_fields(relation, base) →  the columns of a relation that is declared without columns

source          the files of a relation as one range of rows, by the readers of `runtime/formats`
watched_files   files that come and grow
replay          the rows of each micro-batch of files with an end; arrivals, of streams as they come
"""

from squallpy.catalog.relation import MULT
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.sources.source import FileSource, infer_fields, open_source

__all__ = ["MULT", "FileSource", "SkippedRows", "infer_fields", "open_source", "skipped"]
