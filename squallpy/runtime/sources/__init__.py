"""Sources: offsets on the driver, slices of Arrow tables in any process.

protocol         what a source is, as a stranger implements it
foreign_source   those of strangers, kept to it; registry finds them by the name after USING
python_source    data sources that are written for PySpark: python_rows, by schemas as in spark_schema
generator_source rows of a generator in Python
received_source  rows that come once, of a generator or a socket_source; received_lines are read as csv or JSON
http_source      rows that are POSTed, to a push_server
pushed_rows      rows that a program pushes; table_source, those of a view, as a table_slice
changelog_rows   rows with the multiplicities that operations tell; located_rows, with columns of where they are from

Files are rows by number: any range of any columns, at any time, in any process.

open_source(relation, base)  →  FileSource   .rows   .read(start, stop, columns)   picklable
infer_fields(relation, base) →  the columns of a relation that is declared without columns

source           the files of a relation as one range of rows, by the readers of `runtime/formats`
watched_files    files that come and grow: new in the folder_listing, a file_piece at a time
shuffled_rows    rows of files in a random order, for estimates
input            what each batch reads of each relation
replay           the rows of each micro-batch of files with an end; arrivals, of streams as they come
stream_times     streams that are idle, and clocks that go on without rows
source_report    how old what was read is, and what is unread
"""

from squallpy.catalog.relation import MULT
from squallpy.runtime.formats.skipped_rows import SkippedRows, skipped
from squallpy.runtime.sources.source import FileSource, infer_fields, open_source

__all__ = ["MULT", "FileSource", "SkippedRows", "infer_fields", "open_source", "skipped"]
