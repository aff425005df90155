# Everything starts here. `make demo` and `make test` need only python3 (3.11 or newer) and make.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCES := common curator party parley benchmarks tests protos docs deploy

.PHONY: help install dev demo test test-spark test-all chaos soak year check format protos docs wheel sbom wheelhouse clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

install: .venv/.installed ## .venv with the command .venv/bin/parley

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "parley needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing parley and its pinned dependencies into .venv ..."
	PIP_CONSTRAINT=constraints.txt $(PIP_INSTALL) -e '.[all]'
	@$(BIN)/python -m compileall -q common curator party parley
	@touch $@

dev: .venv/.dev
.venv/.dev: .venv/.installed
	@echo "installing the development tools into .venv ..."
	PIP_CONSTRAINT=constraints.txt $(PIP_INSTALL) -e '.[dev,bench]'
	@touch $@

demo: .venv/.installed ## the main job, on data the project makes itself
	$(BIN)/parley demo --out demo-release

# Three workers for two cores: while the services of one test wait for each other, another runs.
test: .venv/.dev ## all tests but the slow ones
	$(BIN)/python -m pytest -n 3 --dist worksteal

# One session of a cluster of two workers; a session is started once, so it is one process.
test-spark: .venv/.dev ## counts and rows of a small Spark cluster (needs Java 17)
	$(BIN)/python -m pytest tests/integration/test_spark.py -m "" -k "to_the_last_unit or drawn_here"

test-all: .venv/.dev ## all tests, the slow ones too, with new examples for the property tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "" --hypothesis-profile wandering

# Options of these three in ARGS: make chaos ARGS="--seconds 60 --seed 7".
chaos: .venv/.dev ## batches of studies under random faults, for five minutes
	$(BIN)/python -m tests.chaos $(ARGS)

soak: .venv/.dev ## 1,000 small studies; does memory, disk or anything else grow?
	$(BIN)/python -m tests.chaos.soak $(ARGS)

year: .venv/.dev ## a year of 50 studies, owners, clocks, backups and upgrades, in minutes
	$(BIN)/python -m tests.chaos.year $(ARGS)

check: .venv/.dev ## format, lint, types, import contracts, generated code
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python protos/generate.py --check
	$(BIN)/python docs/generate.py --check

protos: .venv/.dev ## regenerate the code of the wire contract
	$(BIN)/python protos/generate.py

docs: .venv/.dev ## regenerate docs/reference from the code
	$(BIN)/python docs/generate.py

format: .venv/.dev ## let ruff format and fix
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

wheel: .venv/.dev ## the wheel of the last commit in dist/, the same bytes on every machine
	sh deploy/make-wheel.sh $(BIN)/python dist

sbom: .venv/.dev ## the bill of materials of what is installed with parley: dist/parley.cdx.json
	$(BIN)/python deploy/sbom.py dist/parley.cdx.json

wheelhouse: .venv/bin/python ## everything for a machine without a network, as one archive in dist/
	sh deploy/offline/make-wheelhouse.sh $(BIN)/python

clean: ## remove what make made
	rm -rf .venv demo-release demo-release-evaluation.html build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Each benchmark prints a table of ratios and writes benchmarks/results/NAME.json.
.PHONY: bench-counting bench-crypto bench-noise bench-schema bench-privelet bench-privbayes \
	bench-subn bench-scale bench-linked bench-transport bench-wide bench-parties bench-forecast bench-polls \
	bench-answers bench-coverage bench-coverage-tables bench-coverage-linked bench-means bench-type1 bench-descent bench-tails bench-rules bench-papers bench-prior
bench-counting: .venv/.dev ## counting against pandas and DuckDB
	$(BIN)/python -m benchmarks.counting
bench-crypto: .venv/.dev ## packed Paillier and masks against one ciphertext per cell
	$(BIN)/python -m benchmarks.crypto
bench-noise: .venv/.dev ## noise against OpenDP's sampler
	$(BIN)/python -m benchmarks.noise
bench-schema: .venv/.dev ## encoding against pandas map and cut
	$(BIN)/python -m benchmarks.schema_speed
bench-privelet: .venv/.dev ## section 8 of the Privelet paper
	$(BIN)/python -m benchmarks.privelet
bench-privbayes: .venv/.dev ## the PrivBayes papers' tables, and the public implementations
	$(BIN)/python -m benchmarks.privbayes
# make bench-papers ARGS="run subn-7 privbayes-12 --runs 20"; without ARGS it lists the figures.
bench-papers: .venv/.dev ## every figure and table of the five papers: list, or run some
	$(BIN)/python -m benchmarks.papers $(ARGS)
bench-descent: .venv/.dev ## counts that descend a hierarchy of many values, against cutting it
	$(BIN)/python -m benchmarks.schema_features descent
bench-tails: .venv/.dev ## means of amounts, with and without tails that fall outwards
	$(BIN)/python -m benchmarks.schema_features tails
bench-rules: .venv/.dev ## rules in the schema against none
	$(BIN)/python -m benchmarks.schema_features rules
bench-scale: .venv/.dev ## more rows than memory, in and out, against DuckDB
	$(BIN)/python -m benchmarks.scale
# make bench-study ARGS=--large
bench-study: .venv/.dev ## where the time of a study goes, and of the commands of a reader
	$(BIN)/python -m benchmarks.study $(ARGS)
# make bench-subn ARGS="--tables adult --peers"; make bench-subn ARGS="--parts wire"
bench-subn: .venv/.dev ## studies of several owners: accuracy, bytes, seconds; ranks, MST and AIM
	$(BIN)/python -m benchmarks.subn $(ARGS)
# make bench-ratios ARGS="--tables churn health --epsilons 1"
bench-ratios: .venv/.dev ## subn+ over AIM, MST, PrivBayes and the floor, on tables nobody chose on
	$(BIN)/python -m benchmarks.subn_ratios $(ARGS)
bench-linked: .venv/.dev ## people and their events against independent columns and flat rows
	$(BIN)/python -m benchmarks.linked $(ARGS)
bench-transport: .venv/.dev ## a study over gRPC against the same study in one process
	$(BIN)/python -m benchmarks.transport
bench-wide: .venv/.dev ## 200 binary and 60 mixed columns against the floor
	$(BIN)/python -m benchmarks.wide
bench-parties: .venv/.dev ## cost per party from 3 to 1,000, and the ring over slow links
	$(BIN)/python -m benchmarks.parties
bench-polls: .venv/.dev ## polls of parties in a second, with and without 10,000 ended studies
	$(BIN)/python -m benchmarks.polls
bench-prior: .venv/.dev ## what last year's release is worth as a prior
	$(BIN)/python -m benchmarks.prior
# make bench-answers ARGS="--tables adult --rows 5000"
bench-answers: .venv/.dev ## errors and intervals of declared analyses against the plan without them
	$(BIN)/python -m benchmarks.answers $(ARGS)
bench-coverage: .venv/.dev ## do 95 % intervals of estimates hold the truth in 95 % of studies
	$(BIN)/python -m benchmarks.coverage
bench-coverage-tables: .venv/.dev ## the same on real tables, by what the release measured
	$(BIN)/python -m benchmarks.coverage_tables
bench-coverage-linked: .venv/.dev ## the same of people and their events
	$(BIN)/python -m benchmarks.coverage_linked
# make bench-means ARGS="--adult adult-raw.csv"
bench-means: .venv/.dev ## do intervals of means hold where numbers heap inside bins
	$(BIN)/python -m benchmarks.means $(ARGS)
bench-type1: .venv/.dev ## how often do 95 % intervals show a difference where there is none
	$(BIN)/python -m benchmarks.type1
bench-forecast: .venv/.dev ## what error at which epsilon: the tables of docs/choosing-epsilon.md
	$(BIN)/python -m benchmarks.forecast --write docs/choosing-epsilon.md
