# Two commands: `make demo` shows the product, `make test` runs every check. Both set up .venv themselves.
# While working: `make quick` is a smoke test of seconds. `make agree` runs every program of the known answers on both
# engines, where `make test` takes a sample.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: test quick agree demo lint types bench docs tables pictures clean

test: .venv/ready lint types
	$(BIN)/pytest

quick: .venv/ready
	$(BIN)/pytest --quick

agree: .venv/ready
	$(BIN)/pytest --agree tests/known tests/test_agreement.py tests/test_agreement_programs.py

demo: .venv/ready
	$(BIN)/python -m examples.demo

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/ready
	$(BIN)/basedpyright --warnings

bench: .venv/ready
	$(BIN)/python -m bench

docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m docs.make.site

tables: .venv/ready
	$(BIN)/python -m docs.make.porting
	$(BIN)/pto isa --docs docs/isa

pictures: .venv/ready
	$(BIN)/python -m docs.make.pictures

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,test]"
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist site
