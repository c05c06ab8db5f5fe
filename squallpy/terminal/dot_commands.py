"""Dot commands of the shell: DuckDB's, with psql's as synonyms.

.tables   \\d          .schema orders   \\d orders          .read q.sql   \\i q.sql
"""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.terminal.failures import Quit
from squallpy.terminal.result_printer import MODES
from squallpy.terminal.statement_reader import Entry

if TYPE_CHECKING:
    import pyarrow as pa

    from squallpy.terminal.shell import Shell

DEEPEST = 20
"""Scripts that may read each other: more are a circle."""
Run = Callable[["Shell", Sequence[str]], None]


@dataclass(frozen=True, slots=True)
class Command:
    """A dot command.

    Args:
        names: Its names, DuckDB's behind a dot first, then psql's behind a backslash.
        arguments: How its arguments are written; those in brackets may be left out.
    """

    names: tuple[str, ...]
    arguments: str
    meaning: str
    run: Run

    @property
    def most(self) -> int:
        return len(self.arguments.split())

    @property
    def least(self) -> int:
        return sum(not word.startswith("[") for word in self.arguments.split())


def run_command(shell: "Shell", entry: Entry, file: str) -> None:
    """Run the command of a line; SQ7004 for an unknown one, or for arguments that do not fit."""
    word, *arguments = _words(entry, file)
    span = Span(file, entry.line + 1, entry.column + 1, len(word), " " * entry.column + entry.text)
    command = _find(word, len(arguments))
    if command is None:
        raise SquallError("SQ7004", f'unknown command "{word}"', span, _nearest(word))
    if not command.least <= len(arguments) <= command.most:
        usage = f"{command.names[0]} {command.arguments}".rstrip()
        raise SquallError("SQ7004", f"{word} has {len(arguments)} arguments", span, f"write {usage}")
    try:
        command.run(shell, arguments)
    except SquallError as error:
        raise error.at(span) from None


def _words(entry: Entry, file: str) -> list[str]:
    try:
        # NB: psql's commands begin with a backslash, which is none that escapes
        lexer = shlex.shlex(entry.text.rstrip(";"), posix=True, punctuation_chars=False)
        lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
        return list(lexer)
    except ValueError:
        span = Span(file, entry.line + 1, entry.column + 1, len(entry.text), " " * entry.column + entry.text)
        raise SquallError("SQ1001", "a quote that is not closed", span) from None


def _find(word: str, arguments: int) -> Command | None:
    """Find a command by its name; one name of psql's may be two commands, by the number of arguments."""
    found = [command for command in COMMANDS if word.lower() in command.names]
    return next((c for c in found if c.least <= arguments <= c.most), found[0] if found else None)


def _nearest(word: str) -> str:
    hint = nearest(word, [name for command in COMMANDS for name in command.names if name[0] == word[0]])
    return hint if hint.startswith("did you mean") else ".help lists the commands"


def _help(shell: "Shell", arguments: Sequence[str]) -> None:
    """Show all commands, or one."""
    if arguments:
        word = arguments[0] if arguments[0][0] in ".\\" else f".{arguments[0]}"
        chosen = [command for command in COMMANDS if word.lower() in command.names]
        if not chosen:
            raise SquallError("SQ7004", f'unknown command "{word}"', hint=_nearest(word))
    else:
        chosen = list(COMMANDS)
    heads = [f"{command.names[0]} {command.arguments}".rstrip() for command in chosen]
    others = [" ".join(command.names[1:]) for command in chosen]
    left, middle = max(map(len, heads)), max(map(len, others))
    lines = [
        f"{head:<{left}}  {other:<{middle}}  {command.meaning}"
        for head, other, command in zip(heads, others, chosen, strict=True)
    ]
    if not arguments:
        lines.append("Statements end with a semicolon: CREATE STREAM, CREATE MATERIALIZED VIEW, SELECT, SUBSCRIBE, …")
    shell.printer.text("\n".join(lines))


def _show(what: str) -> Run:
    return lambda shell, _: shell.execute(f"SHOW {what}")


def _tables(shell: "Shell", _: Sequence[str]) -> None:
    """List streams, tables, views, sinks and functions."""
    from squallpy.live.definitions import kind_of

    entries = list(shell.session.catalog.entries.values())
    shell.printer.table(_table(name=[e.name for e in entries], kind=[kind_of(e).lower() for e in entries]))


def _schema(shell: "Shell", arguments: Sequence[str]) -> None:
    """Show the columns of one entry, or of all."""
    if arguments:
        shell.execute(f"DESCRIBE {_quoted(arguments[0])}")
        return
    from squallpy.catalog.catalog import ViewDefinition
    from squallpy.catalog.relation import Relation
    from squallpy.live.definitions import kind_of

    entries = [e for e in shell.session.catalog.entries.values() if isinstance(e, Relation | ViewDefinition)]
    columns = [", ".join(f"{f.name} {f.type}" for f in shell.session.columns(e.name)) for e in entries]
    kinds = [kind_of(e).lower() for e in entries]
    shell.printer.table(_table(name=[e.name for e in entries], kind=kinds, columns=columns))


def _plan(shell: "Shell", arguments: Sequence[str]) -> None:
    name, *stage = arguments
    shell.execute(f"EXPLAIN {' '.join(stage)} {_quoted(name)}")


def _stats(shell: "Shell", arguments: Sequence[str]) -> None:
    """Show the rows of views, or the memory of what one is maintained from."""
    session = shell.session
    names = [session.maintained_name(arguments[0])] if arguments else list(session.entries.views)
    stats = {name: session.stats(name) for name in names}
    if arguments:
        usage = stats[names[0]]["views"]
        columns = list(dict.fromkeys(key for figures in usage.values() for key in figures))
        shell.printer.table(_table(view=list(usage), **{c: [u.get(c) for u in usage.values()] for c in columns}))
    else:
        batches, rows = [s["batches"] for s in stats.values()], [s["rows"] for s in stats.values()]
        shell.printer.table(_table(view=names, rows=rows, batches=batches))


def _mode(shell: "Shell", arguments: Sequence[str]) -> None:
    if arguments:
        shell.printer.set_mode(arguments[0])
    else:
        shell.printer.text("\n".join(f"{'*' if m == shell.printer.format else ' '} {m:<6} {MODES[m]}" for m in MODES))


def _max_rows(shell: "Shell", arguments: Sequence[str]) -> None:
    if not arguments[0].isdigit():
        raise SquallError("SQ7003", f'.maxrows is a number, not "{arguments[0]}"', hint="0 for all rows")
    shell.printer.max_rows = int(arguments[0])


def _timer(shell: "Shell", arguments: Sequence[str]) -> None:
    word = arguments[0].lower() if arguments else ("off" if shell.has_timer else "on")
    if word not in ("on", "off"):
        raise SquallError("SQ7003", f'.timer is on or off, not "{arguments[0]}"')
    shell.has_timer = word == "on"
    if not arguments:
        shell.say(f"timer is {word}")


def _read(shell: "Shell", arguments: Sequence[str]) -> None:
    """Run the statements and commands of a file."""
    from squallpy.frontend.source_text import read_script

    path = Path(arguments[0]).expanduser()
    if shell.depth >= DEEPEST:
        raise SquallError("SQ7004", f"{path} is read by a script that it reads, or {DEEPEST} scripts read each other")
    text = read_script(path)
    shell.depth += 1
    try:
        shell.run_lines(text.splitlines(keepends=True), str(path))
    finally:
        shell.depth -= 1


def _output(shell: "Shell", arguments: Sequence[str]) -> None:
    shell.printer.redirect(Path(arguments[0]).expanduser() if arguments and arguments[0] != "stdout" else None)


def _watch(shell: "Shell", arguments: Sequence[str]) -> None:
    """Show a view as it changes, or run the last SELECT again and again."""
    if arguments and not arguments[0].replace(".", "", 1).isdigit():
        shell.watch(shell.session.maintained_name(arguments[0]))
    else:
        shell.repeat(float(arguments[0]) if arguments else 2.0)


def _stop(shell: "Shell", arguments: Sequence[str]) -> None:
    """End live queries: one, or all."""
    names = list(arguments) or list(shell.live_queries)
    for name in names:
        shell.stop_query(name)
    if not names:
        shell.say("no live query runs")


def _quit(_: "Shell", __: Sequence[str]) -> None:
    raise Quit


def _quoted(name: str) -> str:
    """Write a name as SQL, as it is where it is a qualified one."""
    from squallpy.frontend.declaration_text import qualified

    return qualified(name)


def _table(**columns: Sequence[object]) -> "pa.Table":
    import pyarrow as pa

    kinds = {n: pa.int64() if any(isinstance(v, int) for v in values) else pa.string() for n, values in columns.items()}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


COMMANDS: tuple[Command, ...] = (
    Command((".help", ".h", "\\?", "\\h"), "[COMMAND]", "this list, or a part of it", _help),
    Command((".tables", "\\d", "\\dt"), "", "streams, tables, views, sinks and functions", _tables),
    Command((".schema", "\\d"), "[NAME]", "the columns of one, or of all, with their types", _schema),
    Command((".streams",), "", "streams and their columns", _show("STREAMS")),
    Command((".views", "\\dv"), "", "views and their queries", _show("VIEWS")),
    Command((".plan",), "VIEW [STAGE]", "the triggers of a view, or its plan at a stage, as EXPLAIN shows it", _plan),
    Command((".stats",), "[VIEW]", "rows and batches of views; records and bytes that one is maintained from", _stats),
    Command((".mode",), "[FORMAT]", "how results are printed: table, csv, json or line", _mode),
    Command((".maxrows",), "N", "the most rows of a table on a terminal; 0 for all", _max_rows),
    Command((".timer", "\\timing"), "[on|off]", "whether the time of each statement is told", _timer),
    Command((".read", "\\i"), "FILE", "run the statements of a file", _read),
    Command((".output", "\\o"), "[FILE]", "print results to a file; without one, here again", _output),
    Command((".watch", "\\watch"), "[VIEW|SECONDS]", "a view as it changes, or the last SELECT every 2 s", _watch),
    Command((".stop",), "[QUERY]", "end a live query; without one, all", _stop),
    Command((".quit", ".exit", "\\q"), "", "leave, as Ctrl-D does", _quit),
)  # fmt: skip
