"""Servers that tests start: real ones, in temporary folders, on free ports of this host, stopped by their process."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/bin")
SETTINGS = {
    "wal_level": "logical", "max_replication_slots": "32", "max_wal_senders": "32", "listen_addresses": "127.0.0.1",
    "fsync": "off", "max_connections": "60", "shared_buffers": "64MB", "wal_sender_timeout": "10s",
}  # fmt: skip


def find_postgres() -> Path:
    """Return the folder of PostgreSQL's programs; skips the test without one, or fails it in CI."""
    folders = [Path(found) for place in PLACES for found in sorted(glob.glob(place), reverse=True)]
    folders += [Path(found).parent for found in [shutil.which("initdb")] if found]
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    why = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    if os.environ.get("CI") or os.environ.get("SQUALLPY_SERVERS") == "required":
        pytest.fail(why)
    pytest.skip(why)


class PostgresServer:
    """A server of PostgreSQL in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._programs, self._data = find_postgres(), folder / "data"
        self._user = "postgres" if os.getuid() == 0 else None  # NB: it refuses to run as root
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        if self._user:
            about = pwd.getpwnam(self._user)
            os.chown(folder, about.pw_uid, about.pw_gid)
        self._call("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "-N", "--locale=C", "-E", "UTF8")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self, **settings: str) -> None:
        """Start it and wait until it answers."""
        told = [f"-c{name}={value}" for name, value in (SETTINGS | settings).items()]
        command = [
            str(self._programs / "postgres"),
            "-D",
            str(self._data),
            "-k",
            str(self._data),
            f"-p{self.port}",
            *told,
        ]
        log = open(self._data.parent / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(command, user=self._user, stdout=log, stderr=log, cwd="/")
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None and time.monotonic() < until, (self._data.parent / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop it, without waiting for those who are connected."""
        assert self.process
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def kill(self) -> None:
        """Let it die as of a crash, with all its processes."""
        assert self.process
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements, each by itself, and return the rows of the last."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def commit(self, statements: Sequence[str], rolls_back: bool = False) -> None:
        """Execute statements in one transaction."""
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement)
            if rolls_back:
                connection.rollback()

    def clear(self) -> None:
        """Drop everything that tests have made."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
            until = time.monotonic() + 10
            while connection.execute("SELECT 1 FROM pg_replication_slots WHERE active").fetchone():
                assert time.monotonic() < until
                time.sleep(0.02)
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
            for (name,) in connection.execute("SELECT pubname FROM pg_publication").fetchall():
                connection.execute(f'DROP PUBLICATION "{name}"')
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    def _call(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        subprocess.run(command, user=self._user, check=True, stdout=subprocess.DEVNULL, cwd="/")
