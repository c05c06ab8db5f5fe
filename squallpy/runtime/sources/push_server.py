"""A server of addresses to which rows are POSTed, one for each address of the process, in threads of its own.

POST /clicks    200 {"rows": 2}      they are in the spool
                400 {"code": "SQ4004", "error": "… row 2: …"}      none of them is
"""

import gzip
import hmac
import io
import json
import threading
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Protocol

from squallpy.base.addresses import Address, is_loopback
from squallpy.base.errors import SquallError
from squallpy.base.events import DEBUG, SOURCES, log_event
from squallpy.base.records import dataclass

MOST = 64 << 20  # bytes of a body, unpacked
_PATIENCE = 30  # seconds for a request, so that a client that says nothing holds no thread
_LOCK = threading.Lock()


class Unfit(Exception):
    """A body that cannot be read: the code of the error, and what is wrong."""


class Overloaded(Exception):
    """A reason why rows cannot be taken now, but perhaps later."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and the path there, with the token that has to be shown; empty: none."""

    address: Address
    path: str
    token: str = ""


class Taker(Protocol):
    """A stream to which rows are POSTed."""

    endpoint: Endpoint

    @property
    def format(self) -> str:
        """The format of bodies."""

    @property
    def kinds(self) -> Sequence[str]:
        """Their media types."""

    def take(self, body: bytes) -> int:
        """Take the rows of a body, and return their number when they are safe; Unfit, Overloaded."""


class PushServer(ThreadingHTTPServer):
    """The server of an address, as long as any stream is there."""

    daemon_threads = True
    request_queue_size = 128
    _running: ClassVar[dict[Address, "PushServer"]] = {}  # NB: a process can listen at an address only once

    def __init__(self, address: Address) -> None:
        self.takers, self._address = dict[str, Taker](), address
        super().__init__((address.host, address.port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = address.listen("USING http")
        self.server_address = self.socket.getsockname()

    @classmethod
    def serve(cls, taker: Taker) -> "PushServer":
        """Serve the endpoint of a stream; SQ7005 if its address is taken, SQ7002 if another stream has its path."""
        with _LOCK:
            address, path = taker.endpoint.address, taker.endpoint.path
            server = cls._running.get(address) or cls(address)
            if path in server.takers:
                message = f"two streams are at http://{address}{path}"
                raise SquallError("SQ7002", message, hint="give each its own: OPTIONS (endpoint '/name')")
            server.takers[path] = taker
            if address not in cls._running:
                cls._running[address] = server
                threading.Thread(target=server.serve_forever, name=f"rows at {address}", daemon=True).start()
            return server

    def leave(self, taker: Taker) -> None:
        """Serve a stream no more."""
        with _LOCK:
            self.takers.pop(taker.endpoint.path, None)
            if self.takers:
                return
            self._running.pop(self._address, None)
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a client has left."""


class _Handler(BaseHTTPRequestHandler):
    server: PushServer
    server_version = "squallpy"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def do_POST(self) -> None:
        self.close_connection = True  # NB: unless the whole body is read, what follows would be taken for a request
        path = self.path.partition("?")[0]
        taker = self.server.takers.get(path)
        if taker is None:
            self._answer(HTTPStatus.NOT_FOUND, error=f"no stream is at {path}")
        elif not self._is_admitted(taker.endpoint):
            self._answer(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"}, error="the token is missing or wrong")
        elif not self._is_ours(taker.endpoint):
            self._answer(HTTPStatus.FORBIDDEN, error="pages of browsers may not push rows")
        elif (kind := self.headers.get_content_type()) not in taker.kinds and "Content-Type" in self.headers:
            said = f"{kind} is pushed to a stream of format {taker.format}, which takes {taker.kinds[0]}"
            self._answer(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, {"Accept-Post": ", ".join(taker.kinds)}, error=said)
        else:
            self._take(taker)

    def do_GET(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "POST"}, error="rows are POSTed")

    do_HEAD = do_PUT = do_DELETE = do_GET

    def _take(self, taker: Taker) -> None:
        if (length := self.headers.get("Content-Length", "")) == "" or not length.isdecimal():
            self._answer(HTTPStatus.LENGTH_REQUIRED, error="the request has no Content-Length")
            return
        if int(length) > MOST:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error=f"a body has at most {MOST >> 20} MB")
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return  # NB: the client has left; what it may have cut off is not taken
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        try:
            self._answer(HTTPStatus.OK, rows=taker.take(self._unpacked(body)))
        except Unfit as unfit:
            code, message = unfit.args
            self._answer(HTTPStatus.BAD_REQUEST, code=code, error=message)
        except Overloaded as reason:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "1"}, error=str(reason))
        except (SquallError, OSError) as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"Retry-After": "10"}, error=str(error))

    def _unpacked(self, body: bytes) -> bytes:
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return body
        if encoding != "gzip":
            raise Unfit("SQ4003", f"Content-Encoding {encoding} is not supported, only gzip")
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(body)) as packed:
                found = packed.read(MOST + 1)
        except (OSError, EOFError) as error:
            raise Unfit("SQ4003", f"the body is no gzip: {error}") from None
        if len(found) > MOST:
            raise Unfit("SQ4003", f"a body has at most {MOST >> 20} MB when it is unpacked")
        return found

    def _is_admitted(self, endpoint: Endpoint) -> bool:
        """True if no token is asked for, or the right one is shown."""
        scheme, _, shown = self.headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(shown.strip().encode(), endpoint.token.encode())
        return not endpoint.token or (scheme.lower() == "bearer" and right)

    def _is_ours(self, endpoint: Endpoint) -> bool:
        """True if no page of another site asks: a browser says where a page is from, and by which name it asks."""
        name = self.headers.get("Host", "localhost").rpartition(":")[0] or self.headers.get("Host", "localhost")
        return bool(endpoint.token) or ("Origin" not in self.headers and is_loopback(name.strip("[]")))

    def _answer(self, status: HTTPStatus, headers: Mapping[str, str] | None = None, **said: object) -> None:
        body = json.dumps(said).encode() + b"\n"
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        log_event(SOURCES, DEBUG, "request", text=format % args)
