"""Model rows: what is read off a cofactor matrix, such as its cells, or the coefficients of a regression.

N1(a, b, value) := COFACTOR(V_FACT_DIM())
"""

from squallpy.base.records import dataclass
from squallpy.catalog.variable_orders import OrderText
from squallpy.functions.model_functions import Model
from squallpy.logical.expressions import Column
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, head_text
from squallpy.program.complexity import ALL, ONE
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class ModelRows(AuxiliaryKind):
    """The rows of a model of each group.

    Args:
        features: The names of the variables in the order of SELECT.
        variables: The number of each of them in the view's cofactor ring.
        aliases: The names of the relations in the query.
        order: The declared variable order, if one is asked for.
        pair: For pairs of values, the view's keys that have the number of the pair and its values, after those of the
            group; else its payloads are cofactor matrices.
        sizes: Relations with the rows that they will ever have, if these are known of all.
        present: Those whose rows are what there is at a time, not all changes.
    """

    model: Model
    features: tuple[str, ...]
    variables: tuple[int, ...]
    aliases: tuple[str, ...] = ()
    order: OrderText | None = None
    pair: tuple[Column, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    present: tuple[str, ...] = ()

    @property
    def owns_view(self) -> bool:
        return True

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return tuple(title for title, _ in output.items[: len(keys) - len(self.pair) + self.model.keys])

    @property
    def along(self) -> Columns:
        return self.pair

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        return GroupIndex()

    def cost(self, keys: Columns, output: OutputSpec) -> str:
        return ALL if self.pair else ONE  # NB: counts of pairs are read as a whole, whatever changed

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        listed = Names(source.variables).list(source.variables)
        return f"{head_text(name, output)} := {self.model}({source.name}({listed}): {', '.join(self.features)})"
