"""Options and secrets are checked first, then the mode of a sink, then its server, to which nobody connects before."""

from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from tests.connectors.runs import run
from tests.connectors.servers import free_port

AWAY = {
    "postgres": "url 'postgresql://h@127.0.0.1:{port}/db', table 't'",
    "kafka": "kafka.bootstrap.servers '127.0.0.1:{port}', topic 't'",
    "delta": "path 's3://lake/t', storage.aws_endpoint_url 'http://127.0.0.1:{port}', storage.aws_region 'r',"
    " storage.aws_allow_http 'true', storage.aws_access_key_id 'a', storage.aws_secret_access_key 'b',"
    " storage.max_retries '0'",
    "iceberg": "catalog.uri 'http://127.0.0.1:{port}', table 'db.t'",
    "webhook": "url 'http://127.0.0.1:{port}/'",
}


@pytest.mark.parametrize("format", AWAY)
def test_what_is_told_first(format: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("1\n")
    of = AWAY[format].format(port=free_port())
    for more, says in (
        ("mode 'append', nonsense '${env:NOT_THERE}'", 'SQ7002 .*unknown option "nonsense"'),
        ("mode 'append', connect_timeout '${env:NOT_THERE}'", "SQ7002 "),
        ("mode 'append', connect_timeout '1 hour'", "SQ3001 .*mode 'append' only adds rows, and COUNT"),
        ("mode 'changes', connect_timeout '200 ms'", "SQ8010 .*127.0.0.1|SQ8010 .*db.t"),
    ):
        sink = f"CREATE SINK s USING {format} OPTIONS ({of}, {more}) AS SELECT k, COUNT(*) AS n FROM f GROUP BY k;"
        with pytest.raises(SquallError, match=says):
            run(f"CREATE STREAM f (k INT) USING csv OPTIONS (path '{tmp_path}/f.csv'); {sink}")
