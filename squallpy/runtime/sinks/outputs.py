"""The outputs of a script: for each query the target that its CREATE SINK names, or --out.

    --out changes/ --mode changes    changes/batch-000000.csv, changes/batch-000001.csv, …
    --out result.parquet             result.parquet

With several queries without a sink, --out of the second is changes/query-2 or result-2.parquet.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import IO

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path, local_path
from squallpy.catalog.connector_options import CONNECTORS, load_connector, place_of
from squallpy.catalog.relation import Relation
from squallpy.catalog.sink_spec import FINAL, FORMATS, SinkSpec
from squallpy.logical.nodes import Query
from squallpy.runtime.sinks.batch_files import BatchFiles, Manifest, is_batch
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_file import is_stream
from squallpy.runtime.sinks.protocol import Destination, writing
from squallpy.runtime.sinks.query_output import QueryOutput
from squallpy.runtime.sinks.result_file import ResultFile


class Outputs:
    """The outputs of the queries of a script, found from its folder `base`.

    Args:
        out: The sink of those that have none.
    """

    def __init__(self, queries: Iterable[Query], base: Path, out: SinkSpec | None = None) -> None:
        queries, self._base = tuple(queries), base
        several = sum(query.is_printed for query in queries) > 1
        self._sinks = dict[int, SinkSpec]()
        for query in queries:
            if query.sink:
                self._sinks[query.number] = located(query.sink, base)
            elif out and query.is_printed:
                self._sinks[query.number] = _numbered(out, query.number) if several else out
        self._streams = dict[Path, IO[bytes]]()

    def sink(self, query: Query) -> SinkSpec | None:
        """Find the sink of a query; None for one that is printed."""
        return self._sinks.get(query.number)

    def check(self, relations: Iterable[Relation], base: Path) -> None:
        """Raise SQ7005 for a target that another sink has, or a relation of the script reads."""
        taken, relations = dict[str, SinkSpec](), [*relations]
        _check_servers([sink for sink in self._sinks.values() if sink.format in CONNECTORS], relations)
        for sink in self._sinks.values():
            with _at(sink):
                if sink.target is None or (isinstance(sink.target, Path) and is_stream(sink.target)):
                    continue
            other = taken.setdefault(_real(sink.target), sink)
            if other is not sink:
                message = f'the sinks "{other.name}" and "{sink.name}" have one path'
                raise SquallError("SQ7005", message, sink.place("path"), "give each its own")
            for relation in relations:
                if "path" in relation.options and _meet(sink, relation, base):
                    message = f'{sink.target} is read by "{relation.name}" of the same script'
                    raise SquallError("SQ7005", message, sink.place("path"), "name another place")

    def open(self, sink: SinkSpec, identity: str, resumed: bool) -> QueryOutput:
        """Take the target of a query, and delete what an earlier run has written there unless this one resumes it.

        Args:
            identity: That of the query, which is compared when it is resumed.
        """
        with _at(sink):
            return QueryOutput(sink, self._destination(sink, identity, resumed))

    def close(self) -> None:
        """Close streams for their readers."""
        for path, stream in self._streams.items():
            with writing(path):
                stream.close()

    def _destination(self, sink: SinkSpec, identity: str, resumed: bool) -> Destination:
        if sink.format in CONNECTORS:
            made: Destination = load_connector(sink.format).open_sink(self._in_place(sink), identity, resumed)
            return made
        if sink.format not in FORMATS:
            from squallpy.runtime.sinks.python_sink import PythonSink  # NB: imports PySpark

            return PythonSink(sink, self._base)
        target, mode = sink.target, sink.mode
        assert target is not None and mode is not None
        if mode == FINAL:
            format = FileFormat.of(str(target), sink.format, sink.options.get("compression"))
            return ResultFile(target, format, self._streams)
        format = FileFormat(sink.format, sink.options.get("compression"))
        compact = sink.options.get("compact")
        wanted = Manifest(format.suffix, mode, identity)
        return BatchFiles(target, format, wanted, int(compact) if compact else None, resumed)

    def _in_place(self, sink: SinkSpec) -> SinkSpec:
        """Find the folder of a connector's sink from that of the script."""
        try:
            path = local_path(sink.options.get("path", ""))
        except ValueError:
            path = None
        if path is None or "path" not in sink.options:
            return sink
        return replace(sink, options={**sink.options, "path": str((self._base / path).absolute())})


def _check_servers(sinks: Sequence[SinkSpec], relations: Sequence[Relation]) -> None:
    """Raise SQ7005 for a table or topic that two sinks have, or that a relation of the script reads."""
    servers = [relation for relation in relations if relation.format in CONNECTORS]
    read = {place_of(r.format, r.name, r.options, CONNECTORS[r.format].reads): r.name for r in servers}
    taken = dict[tuple[str, ...], str]()
    for sink in sinks:
        option = CONNECTORS[sink.format].writes
        place = place_of(sink.format, sink.name, sink.options, option)
        if place in read:
            message = f'{place[-1]} is read by "{read[place]}" of the same script'
            raise SquallError("SQ7005", message, sink.place(option), "name another")
        if (other := taken.setdefault(place, sink.name)) != sink.name and sink.format != "webhook":
            message = f'the sinks "{other}" and "{sink.name}" write to one {option}'
            raise SquallError("SQ7005", message, sink.place(option), "give each its own")


@contextmanager
def _at(sink: SinkSpec) -> Iterator[None]:
    """Raise errors at the place of a sink in the script."""
    try:
        yield
    except SquallError as error:
        raise error.at(sink.place("path")) from error.__cause__


def located(sink: SinkSpec, base: Path) -> SinkSpec:
    """Find the target of a sink of files from the folder of its script."""
    if sink.format not in FORMATS:
        return sink
    path = sink.options["path"]
    try:
        place = local_path(path)
    except ValueError as error:
        raise SquallError("SQ7005", f"cannot write {path}: {error}", sink.place("path")) from None
    return replace(sink, target=path if place is None else base / place)


def _numbered(sink: SinkSpec, number: int) -> SinkSpec:
    """Give one of several queries a target of its own."""
    target = sink.target
    assert target is not None
    if sink.mode != FINAL:
        mine = target / f"query-{number}" if isinstance(target, Path) else join_path(target, f"query-{number}")
        return replace(sink, target=mine)
    if isinstance(target, Path):
        if is_stream(target):
            return sink
        return replace(sink, target=target.parent / f"{target.stem}-{number}{target.suffix}")
    path, mark, options = target.partition("?")
    suffix = PurePath(path).suffix
    return replace(sink, target=f"{path.removesuffix(suffix)}-{number}{suffix}{mark}{options}")


def _real(place: Path | str) -> str:
    return os.path.realpath(place) if isinstance(place, Path) else place.rstrip("/")


def _meet(sink: SinkSpec, relation: Relation, base: Path) -> bool:
    """True if a sink may write what a relation reads."""
    assert sink.target is not None
    path = relation.options["path"]
    try:
        given = local_path(path)
    except ValueError:  # NB: the reader says so
        return False
    if given is None or isinstance(sink.target, str):
        return given is None and isinstance(sink.target, str) and _is_within(_real(sink.target), path.rstrip("/"))
    target, places = _real(sink.target), [given] if given.is_absolute() else [base / given, Path.cwd() / given]
    names = (target, f"{target}/batch-000000.{sink.format}")
    for place in places:
        if glob.has_magic(str(place)):
            pattern = f"{os.path.realpath(place.parent)}/{place.name}"
            if any(PurePath(name).match(pattern) for name in names):
                return True
        elif _is_within(target, _real(place)) or (is_batch(place.name) and _real(place.parent) == target):
            return True
    return False


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
