"""Results and changes POSTed to a URL as JSON lines: at least once, with keys by which the server knows what it has.

POST /hook                                           rows of a batch, at most `request.rows`
Idempotency-Key: totals-3f0c91…-41-0-77ab…           of batch 41 the first request; a retry has the same key and rows
"""

import ssl
import time
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError, shorten
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import HEADER
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.connectors.backoff import pause
from squallpy.runtime.formats.json_lines import json_rows
from squallpy.runtime.sinks.protocol import SinkWriter

PATIENCE = 30.0  # seconds for a server that is away when a run begins, and for an answer
ROWS = 1000  # of a request
LONGEST = 60.0  # seconds that a server may ask to wait
_PASSING = (408, 425, 429)  # and all from 500 on


def open_sink(spec: SinkSpec, identity: str, resumed: bool) -> "WebhookSink":
    """Connect to the server of a sink; SQ7002, SQ8010."""
    sink = WebhookSink(spec, identity)
    sink.reach()
    how = "at least once: what is sent again has the same Idempotency-Key"
    log_event(SOURCES, WARNING, "delivery", sink=spec.name, server=str(sink), how=how)
    return sink


class WebhookSink:
    """A URL to which a query's rows are POSTed. The URL and headers may be secrets: only the address is shown."""

    def __init__(self, spec: SinkSpec, identity: str) -> None:
        self.spec, self.key = spec, f"{spec.name}-{identity[:16]}"
        written = spec.options["url"]
        url = urlsplit(resolve(written, in_url=not written.startswith("${")))
        try:
            self._port = url.port or (443 if url.scheme == "https" else 80)
        except ValueError:
            self._port = 0
        if url.scheme not in ("http", "https") or not url.hostname or not self._port:
            hint = "such as https://example.org/hook"
            raise SquallError("SQ7002", "the url is none of a web server", spec.place("url"), hint)
        self._host, self._is_secure = url.hostname, url.scheme == "https"
        self._target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {name.removeprefix(HEADER): resolve(value) for name, value in spec.options.items() if HEADER in name}
        self._headers = {"content-type": "application/x-ndjson", "user-agent": "squallpy"} | headers
        self.rows = int(spec.options.get("request.rows", ROWS))
        self._patience, self._timeout = (
            parse_interval(spec.options.get(name, "")) or PATIENCE for name in ("connect_timeout", "timeout")
        )
        self._connection: HTTPConnection | None = None

    def __str__(self) -> str:
        return f"{self._host}:{self._port}"

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        return WebhookWriter(self, schema)

    def finish(self) -> None:
        """End the run: all batches are sent."""

    def close(self) -> None:
        """Leave the server."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def reach(self) -> None:
        """Connect; SQ8010 for a server that is away, after some seconds."""
        until, tries = time.monotonic() + self._patience, 0
        while True:
            try:
                self._connect()
                return
            except OSError as error:
                if isinstance(error, ssl.SSLCertVerificationError) or time.monotonic() >= until:
                    hint = "it may pass: run the same command again when the server is there"
                    raise SquallError("SQ8010", f"{self} cannot be reached: {error}", self.spec.span, hint) from None
            time.sleep(min(pause(tries), max(0.0, until - time.monotonic())))
            tries += 1

    def send(self, body: bytes, batch: int, part: int) -> None:
        """Send some rows, again as long as the server is away or says so; SQ7006 if it refuses them."""
        key = f"{self.key}-{batch}-{part}-{sha256(body).hexdigest()[:16]}"
        tries, is_away = 0, False
        while True:
            wait = pause(tries)
            try:
                status, answer, after = self._post(body, key)
                if 200 <= status < 300:
                    break
                reason = f"{status} {answer}".strip()
                if status < 500 and status not in _PASSING:
                    raise self._refused(batch, f"answers {reason}")
                wait = max(wait, min(after, LONGEST))
            except ssl.SSLCertVerificationError as error:
                raise self._refused(batch, f"cannot be trusted: {error}") from None
            except (OSError, HTTPException) as error:
                self.close()
                reason = str(error) or type(error).__name__
            if not is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self), sink=self.spec.name, reason=reason)
            is_away = True
            time.sleep(wait)
            tries += 1
        if is_away:
            log_event(SOURCES, WARNING, "server is back", server=str(self), sink=self.spec.name)

    def _post(self, body: bytes, key: str) -> tuple[int, str, float]:
        """Send a request once, and return the status, the first line of the answer, and the seconds it asks to wait."""
        connection = self._connect()
        connection.request("POST", self._target, body, self._headers | {"idempotency-key": key})
        answer = connection.getresponse()
        said = answer.read(1000).decode(errors="replace").strip().partition("\n")[0]
        after = answer.headers.get("retry-after", "")
        if not answer.isclosed():
            self.close()  # NB: the rest of a long answer would be that of the next request
        return answer.status, shorten(said), float(after) if after.isdecimal() else 0.0

    def _connect(self) -> HTTPConnection:
        if self._connection is None:
            made = HTTPSConnection if self._is_secure else HTTPConnection
            connection = made(self._host, self._port, timeout=self._timeout)
            connection.connect()
            self._connection = connection
        return self._connection

    def _refused(self, batch: int, why: str) -> SquallError:
        message = f"batch {batch:,} cannot be sent: {self} {why}"
        return SquallError("SQ7006", message, self.spec.span, "the batch before is whole")


class WebhookWriter:
    """The writer of a URL."""

    def __init__(self, sink: WebhookSink, schema: pa.Schema) -> None:
        self._sink, self._schema, self._batch = sink, schema, schema.empty_table()

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> None:
        self._batch = pa.Table.from_batches(rows, self._schema)

    def commit(self, messages: list[Any], batch: int) -> None:
        rows, most = self._batch, self._sink.rows
        for part, first in enumerate(range(0, len(rows), most)):
            self._sink.send(b"".join(json_rows(rows.slice(first, most))), batch, part)

    def abort(self, messages: list[Any], batch: int) -> None:
        """Leave what was sent: it has a key."""

    def for_tasks(self) -> None:
        """Return nothing: rows are sent in order, by the driver."""
