# Each target is one line that also works by hand. `make setup` needs Python >= 3.11 and finds or installs Java >= 17.
BIN := .venv/bin
RUN := .venv/installed
DEVELOP := .venv/developed
# NB: a process that compiles to bytecode all that it imports takes 2 s of processor time for it
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup run demo check test alike ibis long passes compiled connectors connectors-kills cluster wheel fuzz plans bench bench-joins bench-matrix bench-fivm bench-native bench-compile bench-sources table clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: run $(DEVELOP)  ## Java, .venv and everything in it; quick when nothing changed

run: $(RUN)  ## what it takes to run queries, without what tests and checks need
	@tools/java.sh

$(RUN): pyproject.toml tools/setup.sh
	tools/setup.sh

$(DEVELOP): $(RUN)
	tools/setup.sh develop

demo: run  ## a small stream, its query and its fresh answer
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

# NB: PLW1514, files that are read in the encoding of the locale, is a rule of ruff's preview
check: setup  ## ruff, mypy, the import contracts and the rule of docstrings
	$(BIN)/ruff check --preview --select PLW1514 squallpy
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/python tools/prose.py

test: setup  ## the tests; of many that are alike, some
	$(BIN)/python -m pytest

alike: setup  ## of tests that are alike, those that `make test` leaves out; CI runs both
	$(BIN)/python -m pytest -m alike

ibis: setup  ## Ibis' own tests over our backend; prints the table of docs/ibis.md
	$(BIN)/python -m pytest -p tests.ibis_suite.plugin -c tests/ibis_suite/pytest.ini -q --tb=no --pyargs ibis.backends.tests -m squall

long: setup  ## what `make test` leaves out: step tests on the executors that do not fall to them there, 200 examples of each property
	$(BIN)/python -m pytest -m long
	FUZZ=200 $(BIN)/python -m pytest -k property_

passes: setup  ## each step test without each pass and rule that changes its plan; `make test` has six for each
	$(BIN)/python -m pytest -m passes

compiled: setup  ## each step test with its triggers compiled; `make test` has a sample
	$(BIN)/python -m pytest -m compiled

connectors: setup  ## faults, kills and long runs of sources and sinks of servers: KILLS=100 for as many
	$(BIN)/python -m pytest tests/connectors -m "(connectors or long) and not (long and spark)" -n 0

connectors-kills: N := 100
connectors-kills: setup  ## runs over servers, and the servers, killed N times for each connector: make connectors-kills N=20
	KILLS=$(N) $(BIN)/python -m pytest tests/connectors -m "connectors or long" -k kills -n 0

cluster: setup  ## whole runs whose masters, workers and drivers are killed, most on a standalone cluster: KILLS=300 for as many
	$(BIN)/python -m pytest -m cluster -n 0

wheel: setup  ## the wheel in an empty environment, as README installs it, answers README's query
	PYTHON=$(BIN)/python tools/wheel.sh

N ?= 1000
fuzz: setup  ## random queries on random streams, N of them for each executor, a tenth of it on Spark; 8 N mutated scripts, N run, 4 N files of each format: make fuzz N=10000
	FUZZ=$$((4 * $(N))) $(BIN)/python -m pytest tests/steps/test_random.py tests/fuzz

plans: setup  ## rewrite the golden plans; review them as a diff
	$(BIN)/python -m squallpy.testing.goldens

bench: setup  ## throughput against peers in the same run: a table and a plot
	$(BIN)/python -m bench.throughput.run

bench-joins: setup  ## join operators on skewed streams, simulated and on Spark; band joins beside DuckDB
	$(BIN)/python -m bench.joins.simulated
	$(BIN)/python -m bench.joins.hypercube
	$(BIN)/python -m bench.joins.ranges
	$(BIN)/python -m bench.joins.operators
	$(BIN)/python -m bench.joins.by_hand
	$(BIN)/python -m bench.joins.migrations
	$(BIN)/python -m bench.joins.local

bench-matrix: setup  ## matrix programs kept fresh, beside their re-evaluation as the papers did it and as an expert would
	$(BIN)/python -m bench.matrix.run
	$(BIN)/python -m bench.matrix.figures

bench-fivm: setup  ## cofactor matrices maintained over joins, beside C++ by hand, F/SQL and DuckDB; needs g++
	$(BIN)/python -m bench.fivm.run
	$(BIN)/python -m bench.fivm.run --order sorted
	$(BIN)/python -m bench.fivm.run --dataset triangle --scale 1 --order shuffled
	$(BIN)/python -m bench.fivm.on_spark

bench-native: setup  ## compiled triggers beside the same queries by hand in Rust, on differential dataflow and DBSP; needs cargo; WITHOUT=dbsp saves its long build
	$(BIN)/python -m bench.native.peers --scale 1 --out bench/results/native.md $(WITHOUT:%=--without %)

bench-compile: setup  ## processor time of a short run, and of compiling queries that repeat a construct
	$(BIN)/python -m bench.compile_time

bench-sources: setup  ## changes of PostgreSQL a second into a query, and how soon a change is in a sink; Q1 over topics of Kafka, and Q3 beside Spark
	$(BIN)/python -m bench.sources
	$(BIN)/python -m bench.kafka_topics
	$(BIN)/python -m bench.kafka_beside_spark

table: setup  ## Table 1 of the paper beside ours: 22 + 13 queries, hours; it goes on where it was
	$(BIN)/python -m bench.table1.run

clean:  ## all that can be made again, compiled kernels included
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse artifacts metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
