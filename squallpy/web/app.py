"""The paths of the page: itself, its figures, the rows and the changes of views, and metrics."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib.resources import files

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from squallpy.base.errors import SquallError, nearest
from squallpy.live.subscription import ViewChange
from squallpy.runtime.observers.prometheus_text import CONTENT_TYPE
from squallpy.web.access import Access
from squallpy.web.guard import Guard
from squallpy.web.protocol import Monitored, MonitoredRows
from squallpy.web.row_pages import FORMATS, RowRequest
from squallpy.web.server_sent_events import ChangeFeed, ReportFeed, change_event
from squallpy.web.snapshots import KEPT, Snapshots

CLIENTS = 200
"""The clients of events at a time."""
_STATUS = {"SQ2001": 404, "SQ7003": 400, "SQ3001": 409, "SQ7012": 410}
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class Page:
    """The page of what is monitored, which may be another one later."""

    def __init__(self, monitored: Monitored) -> None:
        self.monitored = monitored
        self._snapshots = Snapshots(lambda: self.monitored)
        self._reports = ReportFeed(lambda: self.monitored)
        self._changes = dict[str, ChangeFeed]()
        self._work = CapacityLimiter(1)  # NB: rows take a core; batches need the other
        self._static = {file.name: file.read_bytes() for file in (files("squallpy.web") / "static").iterdir()}

    def application(self, access: Access) -> ASGIApp:
        """Make the application, guarded."""
        routes = [
            Route("/", partial(self._file, "page.html")),
            Route("/static/{name}", self._static_file),
            Route("/metrics", self._metrics),
            Route("/healthz", self._health),
            Route("/catalogue", self._catalogue),
            Route("/report", self._report),
            Route("/events", self._events),
            Route("/views/{name:path}/changes", self._view_changes),
            Route("/views/{name:path}", self._rows),  # NB: a quoted name may have slashes
        ]
        return Guard(Starlette(routes=routes, exception_handlers={SquallError: _refuse}), access)

    def show(self, monitored: Monitored) -> None:
        """Show something else from now on."""
        self.monitored = monitored
        self._snapshots.forget()

    def close(self) -> None:
        """Tell all clients how it ends, and let them go."""
        self._reports.tell_end()
        for feed in (self._reports, *self._changes.values()):
            feed.close()

    async def _file(self, name: str, request: Request) -> Response:
        kind = _TYPES.get(name.rpartition(".")[2])
        if name not in self._static or kind is None:
            return PlainTextResponse("there is no such file\n", 404)
        return Response(self._static[name], media_type=kind)

    async def _static_file(self, request: Request) -> Response:
        return await self._file(request.path_params["name"], request)

    async def _metrics(self, request: Request) -> Response:
        return Response(await to_thread.run_sync(self.monitored.metrics), media_type=CONTENT_TYPE)

    async def _health(self, request: Request) -> Response:
        trouble = await to_thread.run_sync(lambda: self.monitored.trouble)
        return PlainTextResponse(f"{trouble or 'ok'}\n", 503 if trouble else 200)

    async def _catalogue(self, request: Request) -> Response:
        return _json(await to_thread.run_sync(self.monitored.catalogue))

    async def _report(self, request: Request) -> Response:
        return _json(await to_thread.run_sync(self.monitored.report))

    async def _events(self, request: Request) -> Response:
        return self._stream(request, lambda: self._reports.listen(self._reports.history))

    async def _rows(self, request: Request) -> Response:
        asked = RowRequest.of(request.query_params)
        read = partial(self._read, request.path_params["name"], asked)
        rows, first, parts = await to_thread.run_sync(read, limiter=self._work)
        headers = {"X-Squall-Batch": str(rows.batch)}
        asyncio.get_running_loop().call_later(KEPT + 1, self._snapshots.prune)
        return StreamingResponse(self._write(first, parts), 200, headers, FORMATS[asked.format])

    def _read(self, name: str, asked: RowRequest) -> tuple[MonitoredRows, bytes, Iterator[bytes]]:
        """Return the rows of a view with the first part of an answer, and the others, which are made later."""
        view = self._find(name)
        rows = self._snapshots.rows(view, fresh=asked.format != "page")
        parts = asked.answer(view, rows)
        return rows, next(parts), parts

    async def _write(self, first: bytes, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the parts of an answer, each made when the one before has been sent."""
        part: bytes | None = first
        while part is not None:
            yield part
            part = await to_thread.run_sync(next, parts, None, limiter=self._work)

    async def _view_changes(self, request: Request) -> Response:
        name = await to_thread.run_sync(self._find, request.path_params["name"])
        if name not in self._changes:
            self._changes[name] = ChangeFeed(lambda: self.monitored.changes(name), self._work)
        with_snapshot = request.query_params.get("snapshot") in ("1", "true")
        snapshot = partial(self._snapshot, name) if with_snapshot else None
        return self._stream(request, lambda: self._changes[name].listen(snapshot))

    def _find(self, name: str) -> str:
        """Return the name of a view as it was declared; SQ2001 if there is none."""
        known = {view["name"].lower(): view["name"] for view in self.monitored.catalogue()["views"]}
        if name.lower() not in known:
            raise SquallError("SQ2001", f'unknown view "{name}"', hint=nearest(name, known.values()))
        return str(known[name.lower()])

    async def _snapshot(self, name: str) -> tuple[int, bytes]:
        """Write the rows of a view as its first change."""
        rows = await to_thread.run_sync(self._snapshots.rows, name, limiter=self._work)
        change = ViewChange(rows.batch, rows.table.slice(0, 0), rows.table)
        return rows.batch, await to_thread.run_sync(change_event, change, limiter=self._work)

    def _stream(self, request: Request, listen: Callable[[], AsyncIterator[bytes]]) -> Response:
        clients = self._reports.clients + sum(feed.clients for feed in self._changes.values())
        if clients >= CLIENTS:
            return PlainTextResponse(f"{clients} clients listen already\n", 503, {"Retry-After": "10"})
        if request.method == "HEAD":  # NB: who asks for no events would listen to them for ever
            return Response(media_type="text/event-stream")
        return StreamingResponse(listen(), media_type="text/event-stream")


def _json(value: object) -> Response:
    return Response(json.dumps(value, default=str), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, SquallError)
    return PlainTextResponse(f"{error}\n", _STATUS.get(error.code, 500))
