"""Statistics of a join in a logical plan."""

from squallpy.base.records import dataclass
from squallpy.catalog.variable_orders import OrderText
from squallpy.functions.model_functions import Model
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Node, check_all


@dataclass(frozen=True, slots=True)
class Factorised(Node):
    """The rows of a model over `features`, columns of a join that is not built; for each group of `keys` its own.

    Args:
        columns: The columns of the model's rows.
        names: What the features are called in these rows, which are not shared with a model of other names.
        order: The declared variable order; one is derived if it is None.
    """

    input_fields = ("child",)
    child: Node
    model: Model
    features: tuple[Column, ...]
    keys: tuple[Column, ...]
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    order: OrderText | None = None

    def __post_init__(self) -> None:
        check_all((*self.features, *self.keys), self.child)
        assert len(self.names) == len(self.features)
        assert [c.type for c in self.columns] == [type for _, type in self.model.columns]

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return (*self.keys, *self.columns)
