"""Versions of a Delta table: their files, and what each has added.

place = Place.of({"path": "s3://lake/orders", "storage.aws_region": "eu-west-1"})
place.table(7)            →   the DeltaTable as of version 7
place.added(6, 7)         →   {7: ("part-0001.parquet",)}      SQ4009 if a version took rows away
"""

import json
from collections.abc import Callable, Mapping
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.errors import SquallError, shorten
from squallpy.base.local_paths import local_path
from squallpy.base.records import dataclass
from squallpy.base.secrets import resolve
from squallpy.catalog.connector_options import STORAGE
from squallpy.runtime.connectors.backoff import COLOURS, PATIENCE, ask_again, is_store_away

T = TypeVar("T")
NOT_FOLLOWED = "SQ4009"
UNREAD = frozenset({"deletionVectors", "columnMapping"})
"""Features of tables that the reader of data files does not know, so that rows that went would be there."""
FEED = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class Place:
    """The place of a table. Secrets are looked up where it is read.

    Args:
        storage: Options of the storage, as they are written.
        patience: Seconds for a storage that is away when a run begins.
    """

    path: str
    storage: Mapping[str, str]
    patience: float = PATIENCE

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Place":
        """Read the options of a connector."""
        path = options["path"]
        try:
            local = local_path(path)
        except ValueError:
            local = None
        storage = {name.removeprefix(STORAGE): each for name, each in options.items() if name.startswith(STORAGE)}
        patience = parse_interval(options.get("connect_timeout", "")) or PATIENCE
        return cls(path if local is None else str(Path(local).absolute()), storage, patience)

    def __str__(self) -> str:
        return self.path

    @property
    def secrets(self) -> dict[str, str] | None:
        """The options of the storage, with secrets."""
        return {name: resolve(value) for name, value in self.storage.items()} or None

    def table(self, version: int | None = None, seconds: float = inf) -> DeltaTable:
        """Open the table, as of a version; SQ4001 if there is none, SQ4009 if the version is gone.

        Args:
            seconds: How long a storage that is away is waited for.
        """
        options = self.secrets
        try:
            return ask_again(
                lambda: DeltaTable(self.path, version=version, storage_options=options), is_store_away, self, seconds
            )
        except TableNotFoundError:
            raise SquallError(
                "SQ4001", f"there is no Delta table at {self}", hint="write one, or mend the path"
            ) from None
        except (DeltaError, OSError) as error:
            if version is None or is_store_away(error):
                raise self.fault(error) from None
            raise self.gone(version, version) from None

    def patiently(self, ask: Callable[[], T]) -> T:
        """Do something as a run begins, again while the storage is away; SQ8010 for what it says."""
        try:
            return ask_again(ask, is_store_away, self, self.patience)
        except (DeltaError, OSError) as error:
            raise self.fault(error) from None

    def added(self, table: DeltaTable, first: int, last: int) -> dict[int, tuple[str, ...]]:
        """List the files that some versions have added; SQ4009 if one took rows away or is gone."""
        files = pafs.PyFileSystem(DeltaStorageHandler.from_table(table._table, self.secrets))
        found = dict[int, tuple[str, ...]]()
        for version in range(first, last + 1):
            name = f"_delta_log/{version:020}.json"
            try:
                text = ask_again(lambda name=name: _read(files, name), is_store_away, self)  # type: ignore[misc]
            except OSError:
                raise self.gone(version, last) from None
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
        return SquallError("SQ3001", message, hint=f"run ALTER TABLE delta.`{self}` DROP FEATURE {features[0]};")

    def gone(self, first: int, last: int) -> SquallError:
        """Describe versions that are there no more."""
        which = f"version {first}" if first == last else f"versions {first} to {last}"
        message = f"{which} of {self} cannot be read any more: vacuumed, or its log was cleaned up"
        return SquallError(
            NOT_FOLLOWED, message, hint="begin anew with another checkpoint: it reads the table as it is"
        )

    def fault(self, error: Exception) -> SquallError:
        """Describe in one line what the storage says."""
        passes = "it may pass: run the same command again when the storage is there"
        hint = passes if is_store_away(error) else "a retry does not help before that is mended"
        return SquallError("SQ8010", f"{self} cannot be read: {one_line(error)}", hint=hint)


def _read(files: pafs.FileSystem, name: str) -> bytes:
    with files.open_input_file(name) as source:
        return bytes(source.read())


def one_line(error: Exception) -> str:
    """Return what an error says, in one line, without the colours of its library."""
    said = " ".join(COLOURS.sub("", str(error)).split())
    return shorten(said) if len(said) > 300 else said
