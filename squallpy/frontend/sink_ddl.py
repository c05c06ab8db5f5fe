"""CREATE SINK, as parsed by `grammar/script.lark`, → SinkSpec."""

from squallpy.base.errors import Span, SquallError
from squallpy.catalog.connector_options import CONNECTORS
from squallpy.catalog.sink_spec import FINAL, FORMATS, PYTHON, UPSERT, SinkSpec, check_sink_format, check_sink_option
from squallpy.frontend.ddl import at, name_of, token_span, written_options
from squallpy.frontend.grammars import Parsed
from squallpy.frontend.source_text import ScriptText


def read_sink(script: ScriptText, name: str, span: Span, format_name: Parsed, options: Parsed | None) -> SinkSpec:
    """Read the name, the format and the options of a sink; SQ7002 at what is wrong of them."""
    with at(token_span(script, format_name.children[0])):
        format = check_sink_format(name_of(format_name))
    given, spans = dict[str, str](), dict[str, Span]()
    for written, value, place in written_options(script, options) if options else ():
        with at(place):
            option, value = check_sink_option(format, written, value, given)
        given[option], spans[option] = value, place
    needed = "path" if format in FORMATS else "class" if format == PYTHON else None
    needed = CONNECTORS[format].needed if format in CONNECTORS else needed
    if needed and needed not in (option.lower() for option in given):
        raise SquallError("SQ7002", f'sink "{name}" has no {needed}', span, f"write OPTIONS ({needed} '...')")
    mode, key = given.pop("mode", None), given.pop("key", None)
    is_keyed = mode == UPSERT or (format in CONNECTORS and CONNECTORS[format].messages)
    if key is not None and not is_keyed:
        raise SquallError("SQ7002", "option \"key\" is for mode 'upsert'", spans["key"], "remove it")
    if "compact" in given and mode == FINAL:
        raise SquallError("SQ7002", 'option "compact" is for files of batches', spans["compact"], "remove it")
    keys = None if key is None else tuple(each.strip() for each in key.split(","))
    return SinkSpec(name, format, given, mode, keys, span, spans)
