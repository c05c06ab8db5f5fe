"""Answers of object stores and catalogs that end within: their clients' errors, real ones, are such that pass."""

import socketserver
import threading
from collections.abc import Callable

import pytest
from deltalake import DeltaTable
from pyarrow import fs
from pyiceberg.catalog import load_catalog

from squallpy.runtime.connectors.iceberg.catalogs import is_passing

pytestmark = pytest.mark.connectors
ANSWERS = {
    "nothing": b"",
    "half a head": b"HTTP/1",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "half a chunk": b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{",
    "half a size": b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1",
}


class Cut(socketserver.BaseRequestHandler):
    """A server that dies within each answer that has a body."""

    answer = b""

    def handle(self) -> None:
        asks = self.request.recv(1 << 16)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" if asks[:4] == b"HEAD" else self.answer)


def read_delta(address: str) -> None:
    store = {"aws_endpoint_url": f"http://{address}", "aws_region": "eu-west-1", "aws_allow_http": "true"}
    DeltaTable("s3://lake/t", storage_options=store | {"aws_access_key_id": "a", "aws_secret_access_key": "b"})


def read_file(address: str) -> None:
    keys = {"access_key": "a", "secret_key": "b", "region": "eu-west-1", "scheme": "http"}
    files = fs.S3FileSystem(**keys, endpoint_override=address, retry_strategy=fs.AwsStandardS3RetryStrategy(1))
    with files.open_input_stream("lake/t") as file:
        file.read()


def read_iceberg(address: str) -> None:
    load_catalog("c", type="rest", uri=f"http://{address}").load_table("a.b")


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("read", [read_delta, read_file, read_iceberg])
def fault_an_answer_that_is_cut(read: Callable[[str], None], answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store or a catalog that dies is waited for, in whatever words its client says it."""
    monkeypatch.setattr(Cut, "answer", ANSWERS[answer])
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Cut) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(Exception) as error:
            read("{}:{}".format(*server.server_address))
        server.shutdown()
    assert is_passing(error.value), error.value
