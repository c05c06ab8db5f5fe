"""A server of metrics in a thread of its own: /metrics for Prometheus, /healthz for who restarts what hangs."""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from squallpy.base.addresses import Address
from squallpy.base.events import DEBUG, QUERY, log_event
from squallpy.runtime.observers.prometheus import Prometheus
from squallpy.runtime.observers.prometheus_text import CONTENT_TYPE


class MetricsServer:
    """A running server; with an error inside the block it says so until it is closed."""

    def __init__(self, address: Address, metrics: Prometheus) -> None:
        self._metrics = metrics
        self._server = _Server(address, metrics)
        self.url = f"http://{Address(address.host or 'localhost', self._server.server_address[1])}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> "MetricsServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._metrics.fail(str(error) or type(error).__name__)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: Address, metrics: Prometheus) -> None:
        self.metrics = metrics
        super().__init__((address.host, address.port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = address.listen("--metrics")
        self.server_address = self.socket.getsockname()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "squallpy"
    timeout = 10  # seconds for a request, so that a client that says nothing holds no thread

    def do_GET(self) -> None:
        metrics = self.server.metrics
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(HTTPStatus.OK, metrics.exposition(), CONTENT_TYPE)
            case "/healthz":
                trouble = metrics.trouble
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, f"{trouble or 'ok'}\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "/metrics and /healthz are here\n")

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        log_event(QUERY, DEBUG, "request", text=format % args)
