"""CREATE STREAM and CREATE TABLE written from Python arguments, so that each option is checked in one place.

declaration_text("orders", "STREAM", {"id": "BIGINT NOT NULL"}, "csv", {"path": "o.csv"}, ("id",))
  →  CREATE STREAM `orders` (`id` BIGINT NOT NULL, PRIMARY KEY (`id`)) USING `csv` OPTIONS ('path' 'o.csv')
"""

from collections.abc import Mapping, Sequence


def quote_name(name: str) -> str:
    """Quote a name: my column  →  `my column`"""
    return f"`{name.replace('`', '``')}`"


def quote_text(text: str) -> str:
    r"""Quote a string: it's  →  'it''s'"""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def declaration_text(
    name: str,
    kind: str,
    columns: Mapping[str, str],
    format: str,
    options: Mapping[str, str],
    primary_key: Sequence[str] = (),
    timestamp_by: str | None = None,
    delay: str | None = None,
    is_stored: bool = False,
) -> str:
    """Write the declaration of a stream or table; without columns, they are those of its files."""
    items = [f"{quote_name(column)} {type}" for column, type in columns.items()]
    if primary_key:
        items.append(f"PRIMARY KEY ({', '.join(map(quote_name, primary_key))})")
    listed = f" ({', '.join(items)})" if items else ""
    timed = f" TIMESTAMP BY {quote_name(timestamp_by)}" if timestamp_by is not None else ""
    timed += f" DELAY {delay}" if delay is not None else ""
    given = ", ".join(f"{quote_text(option)} {quote_text(value)}" for option, value in options.items())
    reading = f" USING {quote_name(format)}" + (f" OPTIONS ({given})" if given else "")
    return f"CREATE {kind} {qualified(name)}{listed}{reading}{timed}{' STORED' if is_stored else ''}"


def qualified(name: str) -> str:
    """Quote a name that may be in a schema: sales.orders  →  `sales`.`orders`"""
    return ".".join(map(quote_name, name.split(".")))
