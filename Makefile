# Two commands a newcomer needs: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all setup lint docs results pictures peers brax mjlab dist clean

demo: .venv/.demo
	$(BIN)/scout demo --out out/demo

test: setup lint
	$(BIN)/python -m pytest

test-all: setup lint .venv/.ray
	$(BIN)/python -m pytest -m 'slow or not slow' --hypothesis-profile=new

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

setup: .venv/.test

# The documentation site: open out/site/index.html. The notice that is turned off is about another version of mkdocs.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The pages of results, the page of pairs and their figures, from the committed records alone.
results: setup
	$(BIN)/python -m scout_rl.bench.reproduction.reproduction results docs docs/results.md
	$(BIN)/python -m scout_rl.bench.reproduction.pairs results-development docs docs/disagreements.md
	$(BIN)/python -m scout_rl.bench.reproduction.one_rule results-one-rule docs/one-rule.md
	$(BIN)/python -m scout_rl.bench.reproduction.results docs docs/results.md results results-one-rule

# The pictures of the front page and of the watch page, from the committed records and one layout of the bank.
pictures: setup
	$(BIN)/python -m benchmarks.pictures
	$(BIN)/python -m tests.watch.pictures

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

# Everything that the printed speeds are compared with, in one environment beside our own pins:
# .venv-peers/bin/python -m benchmarks.NAME
PEERS := jaxued six envpool navix sbx-rl
peers: .venv-peers/.installed

.venv-peers/.installed: pyproject.toml constraints.txt constraints-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install -q -c constraints.txt -c constraints-peers.txt -e '.[cli,plot,jax,minigrid,bench,sb3]' $(PEERS)
	touch $@

# Trainers whose pins clash with ours have environments of their own. Brax 0.14.2 calls what JAX 0.10 has removed.
brax: .venv-brax/.installed
mjlab: .venv-mjlab/.installed

.venv-brax/.installed: pyproject.toml constraints-brax.txt
	$(PYTHON) -m venv .venv-brax
	.venv-brax/bin/pip install -q -c constraints-brax.txt -e '.[brax,cli,plot]' playground pytest hypothesis
	touch $@

.venv-mjlab/.installed: pyproject.toml constraints-mjlab.txt
	$(PYTHON) -m venv .venv-mjlab
	.venv-mjlab/bin/pip install -q -c constraints-mjlab.txt -e '.[torch,cli,plot]' mjlab pytest hypothesis
	touch $@

# What would be uploaded, and whether it is fit for that.
dist: .venv/.release
	rm -rf out/dist
	$(BIN)/python -m build --no-isolation --outdir out/dist .
	$(BIN)/twine check --strict out/dist/*
	$(BIN)/check-wheel-contents out/dist/*.whl

.venv/.release: pyproject.toml constraints.txt | .venv/bin/pip
	$(BIN)/pip install -q -c constraints.txt -e '.[release]'
	touch $@

clean:
	rm -rf .venv out build dist
