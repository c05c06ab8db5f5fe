"""Schemas of the benchmarks of F-IVM: relations of numbers that are joined naturally, and a tree of views for each.

HOUSING.features                     →  ("postcode", "livingarea", …), 27 variables
HOUSING.tree.parts[0]                →  View("by_house", ("postcode",), ("house",))
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class View:
    """The natural join of parts, relations by name or views, summed over all variables but those of the key."""

    name: str
    key: tuple[str, ...]
    parts: "tuple[View | str, ...]"


@dataclass(frozen=True)
class Schema:
    """Relations with their columns, in an order in which each has a column of an earlier one, and a tree of views.

    Args: relations: columns by relation, separated by blanks. Those that several relations have are join variables.
    """

    name: str
    relations: Mapping[str, str]
    tree: View
    columns: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", {name: tuple(text.split()) for name, text in self.relations.items()})

    @cached_property
    def features(self) -> tuple[str, ...]:
        """All variables, join variables too."""
        return tuple(dict.fromkeys(column for columns in self.columns.values() for column in columns))

    @cached_property
    def join_variables(self) -> tuple[str, ...]:
        every = [column for columns in self.columns.values() for column in columns]
        return tuple(name for name in self.features if every.count(name) > 1)

    def lifted(self, view: View) -> tuple[str, ...]:
        """List the variables that a view marginalises itself."""
        visible = dict[str, None]()
        for part in view.parts:
            visible |= dict.fromkeys(self.columns[part] if isinstance(part, str) else part.key)
        return tuple(name for name in self.features if name in visible and name not in view.key)

    def features_of(self, view: View) -> tuple[str, ...]:
        """List the variables that are marginalised in a view or below it."""
        here = {*self.lifted(view), *(name for child in children(view) for name in self.features_of(child))}
        return tuple(name for name in self.features if name in here)


def children(view: View) -> Iterator[View]:
    """List the views among the parts of a view."""
    return (part for part in view.parts if isinstance(part, View))


def by(key: str, relation: str, *parts: View) -> View:
    """Write the view of a relation, joined with other views, by a key."""
    return View(f"by_{relation}", tuple(key.split()), (relation, *parts))


HOUSING = Schema(
    "housing",
    {
        "house": "postcode livingarea price nbbedrooms nbbathrooms kitchensize house flat unknown garden parking",
        "shop": "postcode openinghoursshop pricerangeshop sainsburys tesco ms",
        "institution": "postcode typeeducation sizeinstitution",
        "restaurant": "postcode openinghoursrest pricerangerest",
        "demographics": "postcode averagesalary crimesperyear unemployment nbhospitals",
        "transport": "postcode nbbuslines nbtrainstations distancecitycentre",
    },
    View(
        "total",
        (),
        tuple(
            by("postcode", relation)
            for relation in ("house", "shop", "institution", "restaurant", "demographics", "transport")
        ),
    ),
)
RETAILER = Schema(
    "retailer",
    {
        "inventory": "locn dateid ksn inventoryunits",
        "location": "locn zip rgn_cd clim_zn_nbr tot_area_sq_ft sell_area_sq_ft avghhi supertargetdistance "
        "supertargetdrivetime targetdistance targetdrivetime walmartdistance walmartdrivetime "
        "walmartsupercenterdistance walmartsupercenterdrivetime",
        "census": "zip population white asian pacific blackafrican medianage occupiedhouseunits houseunits families "
        "households husbwife males females householdschildren hispanic",
        "item": "ksn subcategory category categorycluster prize",
        "weather": "locn dateid rain snow maxtemp mintemp meanwind thunder",
    },
    View(
        "total",
        (),
        (
            View(
                "by_date", ("locn",), (by("locn dateid", "inventory", by("ksn", "item")), by("locn dateid", "weather"))
            ),
            by("locn", "location", by("zip", "census")),
        ),
    ),
)
SSB = Schema(
    "ssb",
    {
        "lineorder": "custkey partkey suppkey orderdate orderkey linenumber orderpriority shippriority quantity "
        "extendedprice ordertotalprice discount revenue supplycost tax commitdate shipmode",
        "customer": "custkey ccity cnation cregion mktsegment",
        "part": "partkey mfgr category brand color size",
        "supplier": "suppkey scity snation sregion",
        "dates": "orderdate dayinweek dayinmonth dayinyear monthinyear year weekinyear isholiday isweekday",
    },
    by(
        "",
        "lineorder",
        by("custkey", "customer"),
        by("partkey", "part"),
        by("suppkey", "supplier"),
        by("orderdate", "dates"),
    ),
)
TPCH = Schema(
    "tpch",
    {
        "lineitem": "orderkey partkey suppkey linenumber quantity extendedprice discount tax returnflag linestatus "
        "shipdate commitdate receiptdate shipinstruct shipmode",
        "orders": "orderkey custkey orderstatus totalprice orderdate orderpriority shippriority",
        "customer": "custkey nationkey cacctbal mktsegment",
        "nation": "nationkey regionkey nationname",
        "region": "regionkey regionname",
        "partsupp": "partkey suppkey availqty supplycost",
        "part": "partkey mfgr brand type size container retailprice",
        "supplier": "suppkey suppliernation sacctbal",
    },
    by(
        "",
        "lineitem",
        by("orderkey", "orders", by("custkey", "customer", by("nationkey", "nation", by("regionkey", "region")))),
        by("partkey suppkey", "partsupp", by("partkey", "part"), by("suppkey", "supplier")),
    ),
)
TRIANGLE = Schema(
    "triangle", {"r": "a b", "s": "b c", "t": "c a"}, View("total", (), ("r", View("by_s", ("a", "b"), ("s", "t"))))
)
SCHEMAS = {schema.name: schema for schema in (HOUSING, RETAILER, SSB, TPCH, TRIANGLE)}
