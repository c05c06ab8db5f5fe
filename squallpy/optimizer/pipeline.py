"""The order of all passes, from the bound plan to the trigger program; `squall explain passes` prints it.

bind → PLAN_PASSES → lower → CALCULUS_PASSES → materialise → PROGRAM_PASSES → place
"""

from collections.abc import Iterable

from squallpy.base.errors import SquallError, nearest
from squallpy.logical.constant_folding import fold_constant
from squallpy.logical.nodes import Node
from squallpy.logical.null_folding import fold_case, fold_coalesce
from squallpy.optimizer.calculus.clamp_existence_counts import clamp_existence_counts
from squallpy.optimizer.calculus.drop_redundant_lookups import drop_redundant_lookups
from squallpy.optimizer.calculus.maintain_threshold_intervals import maintain_threshold_intervals
from squallpy.optimizer.calculus.prune_columns import prune_columns
from squallpy.optimizer.calculus.push_tests_into_scalars import push_tests_into_scalars
from squallpy.optimizer.calculus.rewrite_extremes import rewrite_extremes
from squallpy.optimizer.calculus.share_results import share_results
from squallpy.optimizer.calculus.split_range_disjunctions import split_range_disjunctions
from squallpy.optimizer.pass_manager import FunctionPass, Pass, RulePass, node_pass
from squallpy.optimizer.plan import push_filters, simplify_outer_joins, simplify_predicates
from squallpy.optimizer.plan.aggregate_over_left_join import aggregate_over_left_join
from squallpy.optimizer.plan.assign_window_clocks import assign_window_clocks
from squallpy.optimizer.plan.compute_group_keys import compute_group_keys
from squallpy.optimizer.plan.decorrelate import decorrelate
from squallpy.optimizer.plan.exists_not_equal import exists_not_equal
from squallpy.optimizer.plan.exists_to_semi import exists_to_semi
from squallpy.optimizer.plan.expand_arg_extremes import expand_arg_extremes
from squallpy.optimizer.plan.expand_distinct_aggregates import expand_distinct_aggregates
from squallpy.optimizer.plan.expand_first_values import expand_first_values
from squallpy.optimizer.plan.expand_grouping_sets import expand_grouping_sets
from squallpy.optimizer.plan.expand_marks import expand_marks
from squallpy.optimizer.plan.expand_outer_joins import expand_outer_joins
from squallpy.optimizer.plan.expand_session_windows import expand_session_windows
from squallpy.optimizer.plan.expand_set_operations import expand_set_operation
from squallpy.optimizer.plan.expand_top_n import expand_top_n
from squallpy.optimizer.plan.full_joins_by_key import full_joins_by_key
from squallpy.optimizer.plan.groupjoin import groupjoin
from squallpy.optimizer.plan.left_join_to_anti_join import left_join_to_anti_join
from squallpy.optimizer.plan.materialise_outer_joins import materialise_outer_joins
from squallpy.optimizer.plan.restrict_groups import restrict_groups
from squallpy.optimizer.plan.semi_joins_in_recursion import semi_joins_in_recursion
from squallpy.optimizer.plan.simplify_intervals import cancel_interval
from squallpy.optimizer.plan.split_aggregates import split_aggregates
from squallpy.optimizer.plan.take_first_rows import take_first_rows
from squallpy.optimizer.plan.window_functions.expand import expand_window_functions
from squallpy.optimizer.program.inline_auxiliary import inline_auxiliary
from squallpy.optimizer.program.read_finer_views import read_finer_views
from squallpy.optimizer.program.read_kept_joins import read_kept_joins
from squallpy.optimizer.program.schedule_statements import schedule
from squallpy.optimizer.program.share_products import share_products
from squallpy.optimizer.program.unfold_denormalised_views import unfold_denormalised_views
from squallpy.program.trigger_program import Lowered, TriggerProgram

PLAN_PASSES: tuple[Pass[Node], ...] = (
    FunctionPass(
        "expand_marks",
        "first, so that the tests for NULLs are dropped next, where NULL has the effect of FALSE",
        expand_marks,
        is_required=True,
    ),
    FunctionPass(
        "exists_to_semi",
        "before subqueries become joins: a filter that requires a row of a subquery need not know who has none",
        lambda plan, _: exists_to_semi(plan),
    ),
    FunctionPass(
        "semi_joins_in_recursion",
        "before subqueries become joins: recursive queries are followed through SEMI joins, but not through outer ones",
        lambda plan, _: semi_joins_in_recursion(plan),
        is_required=True,
    ),
    FunctionPass(
        "decorrelate",
        "before all rules: no other pass knows subqueries, whose joins it makes",
        lambda plan, context: decorrelate(plan, context),
        is_required=True,
    ),
    node_pass(
        "expand_set_operations",
        "before all rules: these know unions, filters and aggregates",
        expand_set_operation,
        required=True,
    ),
    node_pass(
        "expand_grouping_sets",
        "before all rules, which see aggregates of one set of keys",
        expand_grouping_sets,
        required=True,
    ),
    node_pass(
        "expand_first_values",
        "before first rows are expanded: FIRST(x ORDER BY y) is of the first row of its group",
        expand_first_values,
        required=True,
    ),
    node_pass(
        "expand_top_n",
        "before all rules, which see ranks, joins and aggregates, whichever is the cheapest",
        expand_top_n,
        required=True,
    ),
    FunctionPass(
        "take_first_rows",
        "before window functions are expanded, which count the rows before each: the first ones are kept as such",
        take_first_rows,
        is_required=True,
    ),
    FunctionPass(
        "expand_window_functions",
        "before filters are pushed, which then reach the aggregates; FIRST_VALUE is MIN_BY, which is expanded next",
        expand_window_functions,
        is_required=True,
    ),
    FunctionPass(
        "expand_session_windows",
        "after window functions, which read groups of sessions; before filters are pushed into the joins that it makes",
        expand_session_windows,
        is_required=True,
    ),
    node_pass(
        "expand_arg_extremes",
        "MAX_BY, MIN_BY and MODE are other aggregates joined; before filters are pushed, which then reach them, too",
        expand_arg_extremes,
        required=True,
    ),
    node_pass(
        "expand_distinct_aggregates",
        "after MAX_BY and MIN_BY, which read the rows; before filters are pushed, which then reach all values",
        expand_distinct_aggregates,
        required=True,
    ),
    RulePass(
        "normalise_expressions",
        "first, so that later passes see the conjuncts that constants, OR and NOT hide",
        nodes=(push_filters.decide_predicate,),
        evaluating_rules=(fold_constant,),
        exprs=(
            fold_case,
            fold_coalesce,
            simplify_predicates.fold_constant_in_and,
            simplify_predicates.fold_constant_in_or,
            simplify_predicates.fold_not,
            simplify_predicates.decide_arms,
            cancel_interval,
            simplify_predicates.open_abs,
            simplify_predicates.factor_conjunct_out_of_or,
        ),
    ),
    RulePass(
        "restrict_inputs",
        "before filters are pushed: afterwards an OR over two inputs is a join condition",
        nodes=(push_filters.merge_filters, push_filters.push_filter_below_project, push_filters.restrict_inputs_of_or),
    ),
    RulePass(
        "push_filters",
        "when all conjuncts are known: deltas and views become smaller; constants of a UNION meet their filters",
        nodes=(
            push_filters.drop_true_predicate,
            push_filters.merge_filters,
            push_filters.push_filter_below_project,
            push_filters.push_filter_below_window,
            push_filters.push_filter_below_union,
            push_filters.push_filter_below_aggregate,
            simplify_outer_joins.strengthen_left_join,
            simplify_outer_joins.push_filter_left,
            simplify_outer_joins.push_on_right,
            push_filters.push_filter_below_join,
            push_filters.drop_input_of_union,
        ),
        evaluating_rules=(fold_constant,),
        exprs=(simplify_predicates.fold_constant_in_and, simplify_predicates.fold_constant_in_or),
    ),
    FunctionPass(
        "compute_group_keys",
        "when filters by all keys are below: a key that others determine need not be stored with each group",
        lambda plan, _: compute_group_keys(plan),
    ),
    FunctionPass(
        "assign_window_clocks",
        "a window moves with the clocks of all streams under its clause, which no single operator knows",
        lambda plan, context: assign_window_clocks(plan, context.ids, context.report_late),
        is_required=True,
    ),
    FunctionPass(
        "restrict_groups",
        "when filters are at their relations, and windows have clocks; before EXISTS is counts, which all rows read",
        restrict_groups,
    ),
    node_pass(
        "exists_not_equal",
        "equal rows can be looked up and counted, where rows that differ have to be searched (TPC-H Q21)",
        lambda node, context: exists_not_equal(node, context.ids),
    ),
    FunctionPass(
        "full_joins_by_key",
        "before outer joins are rewritten: FULL JOINs on one key are LEFT JOINs of the key's values, one product",
        full_joins_by_key,
    ),
    node_pass(
        "left_join_to_anti_join",
        "before outer joins are rewritten: rows without a match are a difference, cheap where few rows have a match",
        lambda node, _: left_join_to_anti_join(node),
    ),
    node_pass(
        "aggregate_over_left_join",
        "an aggregate that ignores the NULLs of an outer join need not know which rows have a match (TPC-H Q13)",
        lambda node, context: aggregate_over_left_join(node, context.ids),
    ),
    FunctionPass(
        "materialise_outer_joins",
        "while outer joins can be counted: multiplied out, n of them are 2ⁿ products",
        lambda plan, context: materialise_outer_joins(
            plan, context.ids, context.empty_groups, "groupjoin" not in context.disabled_passes
        ),
        is_required=True,
    ),
    node_pass(
        "groupjoin",
        "the aggregate gets a group for each row of the left input, so the outer join is one product instead of three",
        lambda node, context: groupjoin(node, context.ids, context.empty_groups),
    ),
    node_pass(
        "expand_outer_joins",
        "after groupjoin, which needs no union; the rows without a match are then found by a groupjoin, too",
        lambda node, context: expand_outer_joins(node, context.ids, context.empty_groups),
    ),
    node_pass(
        "split_aggregates",
        "last, for groupjoins make aggregates: a view holds the values of one argument of MIN, MAX or a list",
        lambda node, context: split_aggregates(node, context.ids),
        required=True,
    ),
)

CALCULUS_PASSES: tuple[Pass[Lowered], ...] = (
    FunctionPass(
        "drop_redundant_lookups",
        "first, so that later passes see only the auxiliary relations that are read",
        drop_redundant_lookups,
    ),
    FunctionPass(
        "rewrite_extremes",
        "MIN, MAX and EXISTS under an inequality are decided by one value; before intervals, which compare sums",
        rewrite_extremes,
    ),
    FunctionPass(
        "maintain_threshold_intervals",
        "a running aggregate that is only compared with a bound changes its answer at few places",
        maintain_threshold_intervals,
    ),
    FunctionPass(
        "prune_columns", "after the rewrites that change which columns of windows and bags are read", prune_columns
    ),
    FunctionPass(
        "push_tests_into_scalars",
        "the result of a test changes less often than the value tested",
        push_tests_into_scalars,
    ),
    FunctionPass(
        "clamp_existence_counts",
        "a count that is only compared with 0 changes when the first row comes or the last one goes",
        clamp_existence_counts,
    ),
    FunctionPass(
        "split_range_disjunctions",
        "when all comparisons are known: a range of a sorted index costs a logarithm, a disjunction a scan",
        split_range_disjunctions,
    ),
    FunctionPass(
        "share_results",
        "last, when all results are known: those of a view and of queries over it are often equal but for their output",
        share_results,
    ),
)

PROGRAM_PASSES: tuple[Pass[TriggerProgram], ...] = (
    FunctionPass(
        "unfold_denormalised_views",
        "first, so that later passes see the joins: a second copy of a relation's rows costs more than lookups by key",
        unfold_denormalised_views,
    ),
    FunctionPass(
        "read_kept_joins",
        "when it is known which views are kept: one lookup in a join that is held costs less than computing its rows",
        read_kept_joins,
    ),
    FunctionPass(
        "read_finer_views",
        "after joins have their views: sums that a view has in more detail need no view, and no delta, of their own",
        read_finer_views,
    ),
    FunctionPass(
        "inline_auxiliary",
        "when all readers of a view are known: a row that is computed from its group's sums need not be stored",
        lambda program, _: inline_auxiliary(program),
    ),
    FunctionPass(
        "share_products",
        "when statements are final but for their order: those of a view and of queries over it join the same",
        lambda program, _: share_products(program),
    ),
    FunctionPass(
        "schedule",
        "last: each statement reads views as of before or after the batch, which only an order of all of them can give",
        lambda program, _: schedule(program),
        is_required=True,
    ),
)

ALL = (("plan", PLAN_PASSES), ("calculus", CALCULUS_PASSES), ("program", PROGRAM_PASSES))


def disabled_passes(switches: str, optimizer: bool = True) -> frozenset[str]:
    """Read `-NAME,-NAME`, names of passes and rules to be switched off; without `optimizer` all that can be are.

    Raises SQ7003 for an unknown name, and for a pass that is required.
    """
    passes = [each for _, some in ALL for each in some]
    required = {each.name: each.reason for each in passes if each.is_required}
    known = [name for each in passes for name in (each.name, *each.rules)]
    names = list(_names(switches))
    for name in names:
        if name not in known:
            raise SquallError("SQ7003", f'passes: unknown pass "{name}"', hint=nearest(name, known))
        if name in required:
            raise SquallError("SQ7003", f'passes: "{name}" is required: {required[name]}', hint="leave it on")
    return frozenset(names if optimizer else (name for name in known if name not in required))


def _names(switches: str) -> Iterable[str]:
    for word in switches.replace(",", " ").split():
        if not word.startswith("-"):
            raise SquallError("SQ7003", f'passes: "{word}" has no sign', hint=f"-{word} switches it off")
        yield word[1:].lower()
