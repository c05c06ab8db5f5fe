"""Versions of a Delta table: their files, and what each has added.

location = DeltaTableLocation.of({"path": "s3://lake/orders", "storage.aws_region": "eu-west-1"})
location.version(7)       →   the DeltaTable as of version 7
location.added(6, 7)      →   {7: ("part-0001.parquet",)}      SQ4009 if a version took rows away
"""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import STORAGE
from squallpy.runtime.connectors.backoff import PATIENCE, ask_again, is_store_away
from squallpy.runtime.connectors.table_location import NOT_FOLLOWED, TableLocation

UNREAD = frozenset({"deletionVectors", "columnMapping"})
"""Features of tables that the reader of data files does not know, so that rows that went would be there."""
FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class DeltaTableLocation(TableLocation[DeltaTable]):
    """The path of a table. Secrets are looked up where it is read.

    Args:
        storage: Options of the storage, as they are written.
    """

    kind, service, expiry = "Delta", "storage", "vacuumed, or its log was cleaned up"
    missing = (TableNotFoundError,)
    faults = (DeltaError, OSError, ValueError)

    path: str
    storage: Mapping[str, str]
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "DeltaTableLocation":
        """Read the options of a connector."""
        path = options["path"]
        try:
            local = local_path(path)
        except ValueError:
            local = None
        storage = {name.removeprefix(STORAGE): each for name, each in options.items() if name.startswith(STORAGE)}
        patience = parse_interval(options.get("connect_timeout", "")) or PATIENCE
        return cls(path if local is None else str(Path(local).absolute()), storage, patience)

    @property
    def name(self) -> str:
        return self.path

    @property
    def secrets(self) -> dict[str, str] | None:
        """The options of the storage, with secrets."""
        return {name: resolve(value) for name, value in self.storage.items()} or None

    def open(self) -> DeltaTable:
        return DeltaTable(self.path, storage_options=self.secrets)

    def is_conflict(self, error: Exception) -> bool:
        return isinstance(error, CommitFailedError) or "already exists at that location" in str(error)

    def version(self, number: int) -> DeltaTable:
        """Open the table as of a version; SQ4009 if that is gone."""
        options = self.secrets
        try:
            return ask_again(lambda: DeltaTable(self.path, number, options), is_store_away, self)
        except (DeltaError, OSError):
            raise self.gone(version_range(number, number)) from None

    def added(self, table: DeltaTable, first: int, last: int) -> dict[int, tuple[str, ...]]:
        """List the files that some versions have added; SQ4009 if one took rows away or is gone."""
        files = pafs.PyFileSystem(DeltaStorageHandler.from_table(table._table, self.secrets))
        found = dict[int, tuple[str, ...]]()
        for version in range(first, last + 1):
            name = f"_delta_log/{version:020}.json"
            try:
                text = ask_again(lambda name=name: _read(files, name), is_store_away, self)  # type: ignore[misc]
            except OSError:
                raise self.gone(version_range(version, last)) from None
            actions = [json.loads(line) for line in text.splitlines() if line.strip()]
            if any(each["remove"].get("dataChange", True) for each in actions if "remove" in each):
                message = f"version {version} of {self} deletes or updates rows"
                hint = "readChangeFeed 'true' follows them; a stream without it reads what is appended"
                raise SquallError(NOT_FOLLOWED, message, hint=hint)
            adds = (each["add"] for each in actions if "add" in each)
            found[version] = tuple(unquote(each["path"]) for each in adds if each.get("dataChange", True))
        return found

    def unread(self, table: DeltaTable) -> SquallError | None:
        """Describe features of a table with which it cannot be read; None if it has none of them."""
        features = sorted(UNREAD.intersection(table.protocol().reader_features or ()))
        if not features:
            return None
        message = f"{self} has {', '.join(features)}, with which it cannot be read"
        return SquallError("SQ3001", message, hint=f"run ALTER TABLE delta.`{self.path}` DROP FEATURE {features[0]};")


def version_range(first: int, last: int) -> str:
    """Name some versions: (2, 2) → version 2, (2, 3) → versions 2 to 3."""
    return f"version {first}" if first == last else f"versions {first} to {last}"


def _read(files: pafs.FileSystem, name: str) -> bytes:
    with files.open_input_file(name) as source:
        return bytes(source.read())
