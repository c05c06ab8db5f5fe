"""Files, tables and checkpoints in an object store, by URIs whose options name its server."""

import io
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint import durable_folder
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.sinks import output_folder
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_folder import OutputFolder
from tests.connectors.runs import Answers, Running, run
from tests.connectors.servers import S3Server, free_port

pytestmark = pytest.mark.connectors
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM f GROUP BY k"
ODD = ["a b.csv", "day=1/ä b%20?.csv", "h#a.csv", "plus+.csv.gz"]


def write(s3: S3Server, name: str, *rows: tuple[int, int]) -> None:
    system, path = fs.FileSystem.from_uri(s3.uri(""))
    table = pa.Table.from_pylist([{"k": k, "v": v} for k, v in rows], pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    with system.open_output_stream(f"{path.rstrip('/')}/{name}") as file:  # NB: compressed by its suffix
        pa.csv.write_csv(table, file)


def stream(path: str, watch: bool = False) -> str:
    options = ", watch 'true'" if watch else ""
    return f"CREATE STREAM f (k BIGINT, v BIGINT) USING csv OPTIONS (path '{path}', header 'true'{options});"


def test_files(s3: S3Server) -> None:
    for number, name in enumerate(ODD):
        write(s3, f"files/{name}", (1, number), (number, 10))
    assert run(f"{stream(s3.uri('files'))} {QUERY};").rows == Counter([(1, 5, 16), (0, 1, 10), (2, 1, 10), (3, 1, 10)])
    assert run(f"{stream(s3.uri('files/plus%2B.csv.gz'))} {QUERY};").rows == Counter([(1, 1, 3), (3, 1, 10)])
    write(s3, "wrong/ä b.csv", (1, 1))
    text = f"{stream(s3.uri('wrong')).replace('v BIGINT', 'v DATE')} SELECT k, v FROM f;"
    with pytest.raises(SquallError, match=rf"SQ4004 .*s3://{s3.bucket}/wrong/ä b.csv:2(?!.*endpoint)"):
        run(text)
    with pytest.raises(SquallError, match=rf'SQ4001 .*no file "s3://{s3.bucket}/nowhere"'):
        run(f"{stream(s3.uri('nowhere'))} {QUERY};")


def test_a_folder_that_grows(s3: S3Server, tmp_path: Path) -> None:
    """Its checkpoint and its sink are in the store, too; the sink's files are a stream again."""
    text = (
        f"{stream(s3.uri('grows'), watch=True)} CREATE SINK s USING parquet OPTIONS"
        f" (path '{s3.uri('changes')}', mode 'changes') AS {QUERY};"
    )
    back = (
        f"CREATE STREAM f (k BIGINT, n BIGINT, s BIGINT) USING parquet OPTIONS (path '{s3.uri('changes')}', op 'op');"
        " SELECT * FROM f;"
    )
    checkpoint = s3.uri("kept")
    write(s3, "grows/ä 1.csv", (1, 2), (2, 3))
    run(text, checkpoint=checkpoint)
    assert run(back).rows == Counter([(1, 1, 2), (2, 1, 3)])
    write(s3, "grows/ä 2.csv", (1, 5))
    for _ in range(2):
        run(text, checkpoint=checkpoint)
        assert run(back).rows == Counter([(1, 2, 7), (2, 1, 3)])


@pytest.mark.parametrize("most", [durable_folder.SMALL, 9])
def test_files_of_checkpoints_appear_whole(s3: S3Server, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Small ones by one request, others by way of a draft; what fails leaves what was there."""
    monkeypatch.setattr(durable_folder, "SMALL", most)
    folder = open_durable(s3.uri(f"durable {most}".replace(" ", "%20")), "me")

    def twice(content: Any, sink: IO[bytes]) -> None:
        sink.write(content)
        sink.write(content)

    def torn(sink: IO[bytes]) -> None:
        sink.write(b"0123456789")
        raise RuntimeError

    for content in (b"first", b"x" * 20, np.arange(3), b""):
        folder.create("log/1", partial(twice, content))
        assert folder.read("log/1") == bytes(content) * 2
        with pytest.raises(RuntimeError):
            folder.create("log/1", torn)
        assert folder.read("log/1") == bytes(content) * 2 and folder.list("log") == ["1"]


@pytest.mark.parametrize("most", [durable_folder.SMALL, 9])
def test_files_of_sinks_appear_whole(s3: S3Server, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Small ones are put under their names, without a draft that would be copied; none is there before its time."""
    monkeypatch.setattr(output_folder, "SMALL", most)
    folder = OutputFolder(s3.uri(f"sink%20{most}"))
    for name in ("a.parquet", "_waiting/a.parquet"):
        for rows in ([1, 2], [3]):
            table = pa.table({"k": rows})
            folder.draft(lambda out, table=table: FileFormat("parquet").write(table, out))  # type: ignore[misc]
            assert folder.list() == ([".squall-draft"] if most == 9 else []) + (
                ["a.parquet"] if rows == [3] or "/" in name else []
            )
            folder.publish(name)
            with folder.open(name) as file:
                assert pq.read_table(io.BytesIO(file.read())) == table
        with pytest.raises(ZeroDivisionError):
            folder.write(name, lambda out: out.write(b"x" * 20) / 0)
        assert folder.list() == ["a.parquet"] and folder.exists(name)


def place_of_table(s3: S3Server, tmp_path: Path, kind: str, name: str) -> str:
    """Write the options of a table in the store, whose server is told and whose secrets are named."""
    server, secret = f"'http://{s3.address}'", "'${env:AWS_SECRET_ACCESS_KEY}'"
    return {
        "delta": f"path 's3://{s3.bucket}/{name}', storage.aws_endpoint_url {server}, storage.aws_region 'eu-west-1',"
        f" storage.aws_allow_http 'true', storage.aws_access_key_id '{s3.user}',"
        f" storage.aws_secret_access_key {secret}",
        "iceberg": f"catalog.uri 'sqlite:///{tmp_path}/catalog.db', catalog.warehouse 's3://{s3.bucket}/warehouse',"
        f" 'catalog.s3.endpoint' {server}, 'catalog.s3.access-key-id' '{s3.user}', 'catalog.s3.region' 'eu-west-1',"
        f" 'catalog.s3.secret-access-key' {secret}, table 'db.{name}'",
    }[kind]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables(s3: S3Server, tmp_path: Path, kind: str) -> None:
    """A table of the store is a sink and a stream; each batch is there once."""
    where = place_of_table(s3, tmp_path, kind, "t")
    sink = f"CREATE SINK s USING {kind} OPTIONS ({where}, mode 'changes') AS {QUERY}"
    text = f"{stream(s3.uri(kind), watch=True)} {sink};"
    back = f"CREATE STREAM t USING {kind} OPTIONS ({where}); SELECT k, n, s, op FROM t;"
    write(s3, f"{kind}/1.csv", (1, 2), (2, 3))
    run(text, checkpoint=tmp_path / "kept")
    write(s3, f"{kind}/2.csv", (1, 5))
    for _ in range(2):
        run(text, checkpoint=tmp_path / "kept")
        found = run(back).rows
        assert found == Counter([(1, 1, 2, "+"), (2, 1, 3, "+"), (1, 1, 2, "-"), (1, 2, 7, "+")])


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def fault_a_store_that_goes_away(
    s3: S3Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, mode: str
) -> None:
    """A run waits for the store of its table: to read, and to write what a stream elsewhere tells; it says so once."""
    caplog.set_level(logging.WARNING, "squallpy")
    where, rows = place_of_table(s3, tmp_path, kind, f"away_{mode}"), tmp_path / "in"
    rows.mkdir()
    query = "SELECT k, v FROM f" if mode == "append" else QUERY
    feed = f"CREATE STREAM f (k BIGINT, v BIGINT) USING csv OPTIONS (path '{rows}', watch 'true');"
    to_table = f"{feed} CREATE SINK s USING {kind} OPTIONS ({where}, mode '{mode}') AS {query};"
    columns = "k, v" if mode == "append" else "k, n, s"
    table = f"TABLE t USING {kind} OPTIONS ({where}); SELECT {columns} FROM t;"
    answers = Answers()

    def put(number: int) -> None:
        (rows / f".{number}").write_text(f"{number},1\n")
        (rows / f".{number}").rename(rows / f"{number}.csv")

    def written() -> int:
        return run(f"CREATE {table}").rows.total()

    put(1)
    with Running(to_table, tmp_path / "1") as writer:
        writer.wait_for(lambda: is_made(written))
        is_followed = mode == "append"
        with Running(f"CREATE {table.replace('TABLE', 'STREAM', 1)}", tmp_path / "2", answers) as reader:
            reader.wait_for(lambda: answers.rows.total() == 1)
            s3.kill()
            put(2)
            away = 1 + is_followed
            writer.wait_for(lambda: caplog.text.count("server is away") >= away, reader)
            s3.start()
            writer.wait_for(lambda: written() == 2, reader)
            if is_followed:
                reader.wait_for(lambda: answers.rows == Counter([(1, 1), (2, 1)]))
    assert caplog.text.count("server is away") == caplog.text.count("server is back")


def is_made(look: Callable[[], int]) -> bool:
    """True if a table is there, and has a row."""
    try:
        return look() == 1
    except SquallError as error:
        assert error.code == "SQ4001", error
        return False


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def fault_a_store_that_is_not_there(s3: S3Server, tmp_path: Path, kind: str) -> None:
    """It is waited for when a run begins, `connect_timeout`; who may not read is told at once."""
    where = place_of_table(s3, tmp_path, kind, f"nowhere_{kind}")
    write(s3, f"nowhere {kind}/1.csv", (1, 2))
    sink = f"CREATE SINK s USING {kind} OPTIONS ({where}, mode 'changes') AS {QUERY}"
    run(f"{stream(s3.uri(f'nowhere%20{kind}'))} {sink};")
    back = f"CREATE STREAM t USING {kind} OPTIONS ({where}, connect_timeout '1 second'); SELECT k FROM t;"
    away = back.replace(s3.address, f"127.0.0.1:{free_port()}")
    with pytest.raises(SquallError, match=r"SQ8010 script.sql:1:15: .* cannot be read: .*it may pass") as error:
        run(away)
    assert "\x1b" not in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(SquallError, match=r"SQ8010 .* a retry does not help"):
        run(
            back.replace("${env:AWS_SECRET_ACCESS_KEY}", "wrong").replace(
                "connect_timeout '1 second'", "connect_timeout '1 hour'"
            )
        )
