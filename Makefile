# Two commands a newcomer needs: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all setup lint results pictures peers clean

demo: .venv/.demo
	$(BIN)/scout demo --out out/demo

test: setup lint
	$(BIN)/python -m pytest

test-all: setup lint .venv/.ray
	$(BIN)/python -m pytest -m 'slow or not slow'

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: .venv/.test

# The pages of results, the page of pairs and their figures, from the committed records alone.
results: setup
	$(BIN)/python -m scout_rl.bench.reproduction.reproduction results docs docs/results.md
	$(BIN)/python -m scout_rl.bench.reproduction.pairs results-development docs docs/disagreements.md
	$(BIN)/python -m scout_rl.bench.reproduction.one_rule results-one-rule docs/one-rule.md

# The pictures of the front page, from the committed records and one layout of the bank.
pictures: setup
	$(BIN)/python -m benchmarks.pictures

.venv/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit("SCOUT needs Python 3.11 to 3.13, this is " + sys.version.split()[0]) if not (3, 11) <= sys.version_info[:2] <= (3, 13) else None'
	$(PYTHON) -m venv .venv

.venv/.demo: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install -q -c constraints.txt -e '.[demo]'
	touch $@

.venv/.test: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install -q -c constraints.txt -e '.[test]'
	touch $@ .venv/.demo

.venv/.ray: .venv/.test
	$(BIN)/pip install -q -c constraints.txt -e '.[ray]'
	touch $@

# What the benchmarks compare with; pins that clash with ours get an environment of their own.
peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install -q -c constraints.txt -e '.[cli,plot,jax,minigrid]' jaxued six envpool==1.2.5 navix torch==2.13.0

clean:
	rm -rf .venv out build dist
