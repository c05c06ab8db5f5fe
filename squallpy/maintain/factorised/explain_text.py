"""View trees as text: `squall explain viewtree`.

VIEW TREE
  V@k() ⟨COFACTOR x, u⟩ 12 words, materialised
    V@x(k) ⟨COFACTOR x⟩ 7 words
      fact(k, x) stream
    V@u(k) ⟨COFACTOR u⟩ 7 words, materialised, static, kept as rows (k, u) ⟨COUNT⟩
      dim(k, u) table
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from squallpy.base.rings import Cofactor
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.variable_order import VariableOrder
from squallpy.maintain.factorised.view_tree import Part

Names = Mapping[Column, str]


def viewtree_text(
    graph: JoinGraph, order: VariableOrder, trees: Iterable[tuple[str, Part]], degree: int = 1, compensated: bool = True
) -> str:
    """Show the order, and trees with each view's payload, which views are stored, and what is static.

    Args:
        trees: Titles and roots.
        degree: Of the features of cofactor matrices, whose sums may be `compensated`.
    """
    lines = ["VARIABLE ORDER", *(f"  {line}" for line in str(order).split("\n"))]
    ring = Cofactor(0, 1, compensated, degree)
    for title, root in trees:
        lines += ["", title, *_lines(root, graph.names(), ring, "  ")]
    return "\n".join(lines) + "\n"


def _lines(part: Part, names: Names, of_one: Cofactor, indent: str) -> Iterator[str]:
    if isinstance(part, Leaf):
        kind = "stream" if part.is_stream else "table"
        yield f"{indent}{part.name}({_list(part.variables, names)}) {kind}"
        return
    words, degree = replace(of_one, size=len(part.lifted)).words if part.lifted else 1, of_one.degree
    ring = f"COFACTOR {_list(part.lifted, names)}" if part.lifted else "COUNT"
    ring += f" to degree {degree}" if part.lifted and degree > 1 else ""
    at = f"@{','.join(names[v] for v in part.marginalised)}" if part.marginalised else ""
    properties = [f"⟨{ring}⟩ {words:,} word{'s' * (words != 1)}"]
    properties += ["materialised"] if part.is_materialised else []
    properties += ["virtual: its children are joined where it is read"] if part.is_virtual else []
    properties += [] if part.is_stream else ["static"]
    properties += [f"kept as rows ({_list(part.stored_keys, names)}) ⟨COUNT⟩"] if part.keeps_rows else []
    yield f"{indent}V{at}({_list(part.keys, names)}) {', '.join(properties)}"
    for child in part.children:
        yield from _lines(child, names, of_one, indent + "  ")


def _list(variables: Iterable[Column], names: Names) -> str:
    return ", ".join(names[v] for v in variables)
