"""Check of the docstrings under squallpy/ (`make check`): python tools/prose.py

A function's or method's docstring begins with a verb in base form, or with "True if"; that of a class, module, property
or constant is a noun phrase. The first sentence has at most 25 words and one colon, and is no question.

`prose_verbs.txt` beside this file lists the verbs, to be extended; a star marks those that are no nouns, with which no
noun phrase begins.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "squallpy"
MOST_WORDS = 25
MOST_COLONS = 1

_WORDS = Path(__file__).with_name("prose_verbs.txt").read_text(encoding="utf-8").split()
VERBS = frozenset(word.rstrip("*").capitalize() for word in _WORDS)
NO_NOUNS = frozenset(word.rstrip("*").capitalize() for word in _WORDS if word.endswith("*"))
# Heads of headless relatives, clauses and fragments.
_HEADS = (
    "after also and are as asks at be because before behind both but by can do does else for from had has "
    "have he here how if in instead is it may none nobody nothing of on or once she so such than that "
    "then there these they this those though to under until was we were what whatever when whenever where "
    "whether which while who whom whose why with within without you"
)
NO_HEADS = frozenset(_HEADS.split())
_CODE = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!Fig)(?<!cf)(?<!vs)[.?!](?=\s|$)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring with the qualified name of its owner."""

    name: str
    path: Path
    line: int
    text: str
    is_function: bool

    def faults(self) -> Iterator[str]:
        """List the ways in which it breaks the rule."""
        sentence, plain = first_sentence(self.text), _CODE.sub("code", first_sentence(self.text))
        if (count := sum(any(c.isalnum() for c in word) for word in sentence.split())) > MOST_WORDS:
            yield f"its first sentence has {count} words, at most {MOST_WORDS} are allowed"
        if len(re.findall(r":(?=\s|$)", plain)) > MOST_COLONS:
            yield f"its first sentence has more than {MOST_COLONS} colon"
        if plain.rstrip().endswith("?"):
            yield "it is a question"
        first, second, *_ = *re.findall(r"[^\s,.:;]+", sentence), "", ""
        if self.is_function:
            if first not in VERBS and (first, second) != ("True", "if"):
                yield f'"{first}" is no verb in base form (or "True if"; tools/prose_verbs.txt lists them)'
        elif first.lower() in NO_HEADS or (first, second) == ("The", "same"):
            yield f'"{first}" begins no noun phrase'
        elif first in NO_NOUNS and second != "of":  # "Rewrite of EXISTS" is one
            yield f'"{first}" is a verb, where a noun phrase is wanted'


def first_sentence(text: str) -> str:
    """Take the text up to its first full stop or blank line, in one line."""
    paragraph = " ".join(text.strip().split("\n\n", 1)[0].split())
    end = _END.search(paragraph)
    return paragraph[: end.end()] if end else paragraph


def docstrings(path: Path, package: Path) -> Iterator[Docstring]:
    """Read the docstrings of a module, its own first."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from _own_docstring(tree, name, path)
    yield from _docstrings_inside(tree, name, path)


def _docstrings_inside(owner: ast.AST, name: str, path: Path) -> Iterator[Docstring]:
    previous: ast.AST | None = None
    for node in ast.iter_child_nodes(owner):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = f"{name}.{node.name}"
            yield from _own_docstring(node, inner, path)
            yield from _docstrings_inside(node, inner, path)
        else:
            match previous, node:
                case (
                    ast.Assign(targets=[ast.Name(constant)]) | ast.AnnAssign(target=ast.Name(constant)),
                    ast.Expr(ast.Constant(str(text))),
                ):
                    yield Docstring(f"{name}.{constant}", path, node.lineno, text, is_function=False)
            yield from _docstrings_inside(node, name, path)
        previous = node


def _own_docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str, path: Path
) -> Iterator[Docstring]:
    if text := ast.get_docstring(node):
        is_function = not isinstance(node, (ast.Module, ast.ClassDef)) and not _is_property(node)
        yield Docstring(name, path, node.body[0].lineno, text, is_function)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list]
    return any(name.endswith(("property", ".setter", ".getter", ".deleter")) for name in names)


def problems(package: Path) -> Iterator[str]:
    """List the faults of all docstrings of a package with their places."""
    for path in sorted(package.rglob("*.py")):
        for docstring in docstrings(path, package):
            yield from (f"{path}:{docstring.line}: {docstring.name}: {fault}" for fault in docstring.faults())


def main() -> int:
    """Print the problems of the package; return 1 if there are any."""
    wrong = list(problems(PACKAGE))
    print("\n".join(wrong) if wrong else "docstrings follow the rule")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
