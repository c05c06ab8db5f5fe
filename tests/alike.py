"""Tests that are many alike, or long: how many of each `make test` runs. CI and `make alike` run the others, too."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pytest

ELSEWHERE = {"long", "compiled", "passes", "cluster", "connectors"}  # marks of what has its own target
SOME = {
    "api/test_models.py::oracle_predictions_are_those_of_numpy": 1,
    "api/test_relations.py::oracle_a_relation_is_the_query_that_its_sql_is": 8,
    "bench/test_fivm.py::differential_sql_has_the_sums_over_the_join": 2,
    "bench/test_fivm.py::differential_triggers_in_cpp_have_the_sums_over_the_join": 1,
    "bench/test_fivm.py::test_schemas_have_as_many_variables_as_in_the_papers": 1,
    "kernels/test_buddy_allocator.py::property_blocks_never_overlap": 0,
    "kernels/test_kernel_precompilation.py::fault_the_cache_is_deleted_under_a_process": 1,
    "kernels/test_sorted_index.py::test_differential_heights_equal_those_of_a_list": 1,
    "kernels/test_sorted_index.py::test_differential_sorted_index_equals_the_naive_one": 6,
    "live/test_durable_sessions.py::fault_sessions_killed_at_any_write": 2,
    "live/test_live_session.py::oracle_lookups_by_key": 6,
    "live/test_live_session.py::oracle_views_come_and_go": 5,
    "live/test_backfill_from_views.py::property_views_are_filled_while_batches_change_what_they_read": 0,
    "logical/test_letter_case.py::differential_examples_in_any_case": 20,
    "logical/test_letter_case.py::differential_steps_in_any_case": 80,
    "passes/test_passes.py::differential_both_sides": 18,
    "physical/distribute/test_initial_grids.py::differential_operators": 6,
    "physical/distribute/test_pinned_placements.py::differential_right_wherever_a_view_is_set_to_be": 1,
    "physical/joins/test_migration_protocol.py::property_any_number_of_joiners": 0,
    "physical/joins/test_migration_protocol.py::test_migrations_happen": 2,
    "physical/joins/test_range_partitioning.py::test_the_load_of_the_best_ranges": 3,
    "physical/test_view_passes.py::test_no_view_is_visited_more_often_than_it_must_be": 2,
    "plans/test_choices.py::differential_over_kills": 2,
    "plans/test_choices.py::differential_whatever_is_chosen": 2,
    "plans/test_plan_files.py::oracle_plan_files": 2,
    "plans/test_plan_files.py::oracle_plan_files_on_partitions": 1,
    "plans/test_plan_files.py::oracle_plan_files_on_spark": 1,
    "program/test_same_plan_everywhere.py::differential_hash_seeds": 0,
    "runtime/matrix/test_blocks.py::step_in_blocks": 5,
    "runtime/matrix/test_blocks.py::step_spark": 2,
    "runtime/matrix/test_maintained_program.py::differential_distances": 1,
    "runtime/matrix/test_sparse_view.py::differential_programs_over_sparse_inputs": 4,
    "runtime/matrix/test_streams.py::property_streams_equal_naive": 6,
    "runtime/test_batch_plans.py::differential_a_tuple_of_megabytes": 1,
    "runtime/test_batch_plans.py::differential_all_on_a_grid_that_changes": 6,
    "runtime/test_batch_plans.py::differential_heavy_keys_on_a_hypercube": 0,
    "runtime/test_batch_plans.py::differential_steps_while_the_grid_changes": 6,
    "runtime/test_batch_plans.py::property_the_busiest_joiner_under_hybrid": 1,
    "runtime/test_batch_plans.py::property_the_load_stays_within_its_bound_behind_windows": 0,
    "runtime/test_compiled_code.py::differential_compiled_auxiliary_relations": 0,
    "runtime/test_compiled_code.py::differential_compiled_domain": 0,
    "runtime/test_compiled_code.py::differential_compiled_doubles": 0,
    "runtime/test_compiled_code.py::differential_compiled_extremes": 0,
    "runtime/test_compiled_code.py::differential_compiled_in_the_background": 1,
    "runtime/test_compiled_code.py::differential_compiled_queries_over_one_view": 0,
    "runtime/test_compiled_code.py::differential_compiled_ranges": 1,
    "runtime/test_compiled_code.py::differential_compiled_sums_of_doubles": 0,
    "runtime/test_compiled_code.py::differential_compiled_texts": 0,
    "runtime/test_compiled_code.py::differential_compiled_texts_that_are_many": 0,
    "runtime/test_deep_queries.py::test_what_is_deeper_or_multiplied_is_refused_in_a_line": 2,
    "runtime/test_deep_queries.py::test_what_is_long_or_deep_runs": 5,
    "runtime/test_grouping.py::differential_programs_and_vectors": 12,
    "runtime/test_range_extreme_spans.py::property_the_best_value_between_bounds": 7,
    "runtime/test_result_scan.py::property_scans_have_the_rows_of_their_begin": 3,
    "runtime/test_session_windows.py::property_sessions_of_rows_that_come_and_go": 2,
    "runtime/test_skylines.py::property_the_best_value_of_a_side": 6,
    "runtime/test_text_casts.py::differential_constants_and_columns_are_cast_alike": 3,
    "runtime/test_top_n.py::property_shown_rows_are_the_first_of_all": 7,
    "runtime/test_type_limits.py::fault_end_asked": 35,
    "runtime/test_type_limits.py::fault_end_selected": 35,
    "sinks/test_kills.py::fault_killed_by_the_system": 0,
    "sinks/test_reading_back.py::oracle_a_watched_folder_of_a_sink": 4,
    "sources/test_growing_sources.py::fault_killed_while_sources_grow": 0,
    "sources/test_python_source.py::test_on_spark": 2,
    "spark/test_fresh.py::differential_graphs": 1,
    "spark/test_lease.py::fault_a_second_run_is_refused_before_it_touches_anything": 1,
    "spark/test_lease.py::fault_who_lost_it_to_a_run_with_another_plan_is_told_that": 1,
    "state/test_checkpoint.py::differential_another_plan_goes_on_from_the_input": 1,
    "state/test_checkpoint.py::differential_other_limits_of_batches": 2,
    "state/test_checkpoint.py::fault_no_room_for_a_record": 4,
    "state/test_damaged_files.py::fault_flips_in_all_that_a_killed_run_has_left": 1,
    "state/test_input_files.py::test_a_touched_and_a_copied_file_are_the_same": 4,
    "state/test_reshard.py::differential_while_joins_adapt": 1,
    "state/test_state_partition.py::fault_killed_at_every_point": 9,
    "state/test_state_partition.py::fault_killed_at_random_moments": 2,
    "steps/test_examples.py::oracle_examples": 14,
    "steps/test_examples.py::oracle_examples_spark": 4,
    "steps/test_examples.py::oracle_tpcds_files": 5,
    "steps/test_random_models.py::oracle_random_models": 1,
    "steps/test_random_times.py::oracle_random_times": 1,
    "steps/test_random_upserts.py::oracle_random_upserts": 2,
    "steps/test_steps.py::step_spark": 6,
    "steps/test_tpch.py::oracle_tpch": 22,
    "terminal/test_output_file.py::test_descriptors_are_written": 2,
    "terminal/test_prompt.py::golden_two_prompts_share_a_session": 0,
    "terminal/test_prompt.py::test_a_view_that_fills_is_left_to_the_background": 0,
    "terminal/test_prompt.py::test_narrow_terminals": 1,
    "terminal/test_prompt.py::test_ten_thousand_lines_are_pasted": 0,
    "terminal/test_run.py::test_no_cursor_is_moved_where_none_is": 1,
}


def mark_alike(items: Sequence[pytest.Item], some: Mapping[str, int] = SOME) -> set[str]:
    """Mark the tests that `make test` leaves to CI, so that those which it has are spread evenly over all of a kind.

    Returns:
        The names that no test has.
    """
    of = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if not ELSEWHERE & {mark.name for mark in item.iter_markers()}:
            of[item.nodeid.split("[")[0].removeprefix("tests/")].append(item)
    for name, count in some.items():
        alike = of.get(name, [])
        for number, item in enumerate(alike):
            if number * count // len(alike) == (number - 1) * count // len(alike):
                item.add_marker(pytest.mark.alike)
    return some.keys() - of.keys()
