"""Modules that only tests and benches would import, which belong to squallpy/testing."""

import grimp

STARTED = {
    "squallpy.api.notebook": "loaded by %load_ext squallpy",
    "squallpy.matrices": "imported by users",
    "squallpy.runtime.kernels.__main__": "python -m squallpy.runtime.kernels precompiles kernels",
    **{
        f"squallpy.runtime.kernels.{name}": "imported by compiled triggers, as codegen/imports.py says"
        for name in ("composed_texts", "moment_steps", "real_steps")
    },
    "squallpy.runtime.spark.make_class_data_archive": "a command of class_data_archive.py",
    "squallpy.runtime.spark.sql_extension": "called from Java",
    "squallpy.runtime.spark.worker_daemon": "Spark's setting for its workers' daemon",
    "squallpy.terminal.__main__": "python -m squallpy.terminal",
    "squallpy.terminal.spark_main": "what spark-submit runs",
}
ENTRY_POINTS = (".entry_points", ".ibis_backend")  # of connectors, by name, and of ibis


def test_modules_outside_of_testing_are_imported_there() -> None:
    graph = grimp.build_graph("squallpy", cache_dir=None)
    alone = {
        module
        for module in graph.modules
        if ".testing" not in module and not module.endswith(ENTRY_POINTS) and not graph.find_children(module)
        if all(".testing" in other for other in graph.find_modules_that_directly_import(module))
    }
    assert alone == {*STARTED}
