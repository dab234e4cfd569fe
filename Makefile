# Two commands: `make demo` shows the product, `make test` runs every check. Both set up .venv themselves.
# While working: `make quick` is a smoke test of seconds. `make agree` runs every program of the known answers on both
# engines, tests of compiled code with all combinations of their parameters, and all launches of examples as exported,
# where `make test` takes samples.
PYTHON ?= python3
BIN := .venv/bin
TYPES := $(BIN)/basedpyright --warnings
# Tests start hundreds of processes: modules are compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: test quick agree demo lint types bench docs tables pictures clean

# Types are judged beside the tests, since they take one thread, and told behind them.
test: .venv/ready lint
	@$(TYPES) > .venv/types.txt 2>&1 & pid=$$!; \
	echo "$(BIN)/pytest"; $(BIN)/pytest; tests=$$?; \
	echo "$(TYPES)"; wait $$pid; types=$$?; cat .venv/types.txt; \
	test $$tests = 0 || echo "make test: tests failed" >&2; \
	test $$types = 0 || echo "make test: types failed" >&2; \
	test $$tests = 0 -a $$types = 0

quick: .venv/ready
	$(BIN)/pytest --quick

agree: .venv/ready
	$(BIN)/pytest --agree tests/known tests/run/jit tests/test_agreement.py tests/test_agreement_programs.py \
		tests/cxx/test_exported_examples.py

demo: .venv/ready
	$(BIN)/python -m examples.demo

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/ready
	$(TYPES)

bench: .venv/ready
	$(BIN)/python -m bench

docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m docs.make.site

tables: .venv/ready
	$(BIN)/python -m docs.make.porting
	$(BIN)/python -m docs.make.reports
	$(BIN)/python -m docs.make.decisions
	$(BIN)/python -m docs.make.gallery
	$(BIN)/pto isa --docs docs/isa

pictures: .venv/ready
	$(BIN)/python -m docs.make.pictures

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,test]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist site
