"""Messages of Flight SQL as bytes, as others write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.flight.messages import CommandGetSqlInfo, CommandGetTables, CommandStatementQuery, pack, unpack
from squallpy.flight.wire import Message


@dataclass(frozen=True, slots=True)
class Pair(Message):
    name: str | None = None
    data: bytes = b""


@given(st.none() | st.text(), st.binary())
def property_what_is_written_is_read(name: str | None, data: bytes) -> None:
    message = Pair(name, data)
    assert Pair.decode(message.encode()) == message


def test_fields_as_others_write_them() -> None:
    tables = b"\x1a\x02v%\x22\x04VIEW\x22\x05TABLE\x28\x01"
    assert CommandGetTables.decode(tables) == CommandGetTables(None, None, "v%", ("VIEW", "TABLE"), True)
    assert CommandGetTables.decode(b"\x0a\x00").catalog == "", "an empty text is not the absence of one"
    assert CommandGetSqlInfo.decode(b"\x08\x03\x08\xf4\x03").info == (3, 500)
    assert CommandGetSqlInfo.decode(b"\x0a\x03\x03\xf4\x03").info == (3, 500), "packed"
    unknown = b"\x9a\x06\x01x\x98\x06\x05\xa1\x06" + bytes(8) + b"\xa5\x06" + bytes(4)
    assert CommandGetSqlInfo.decode(unknown + b"\x08\x03").info == (3,)
    assert unpack(pack(CommandStatementQuery("SELECT 'é'"))) == CommandStatementQuery("SELECT 'é'")


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\x80" * 11, b"\x0b", b"\x0a\x01\xff", b"\x08\x01", b"\xff"])
def fault_broken_messages(data: bytes) -> None:
    with pytest.raises(SquallError, match="SQ3001 this is no message of Flight SQL"):
        Pair.decode(data)


@given(st.binary(max_size=40))
def property_any_bytes_are_a_message_or_a_mistake(data: bytes) -> None:
    try:
        unpack(data)
    except SquallError as error:
        assert error.code == "SQ3001"


def fault_a_message_that_is_not_understood_is_named() -> None:
    with pytest.raises(SquallError, match="SQ3001 CommandStatementIngest of Flight SQL is not supported"):
        unpack(b"\x0a\x44type.googleapis.com/arrow.flight.protocol.sql.CommandStatementIngest")
