# Everything lives in .venv; nothing outside the checkout is changed.
PYTHON ?= python3.11
BIN := .venv/bin

# uv resolves in seconds what takes pip minutes; where it cannot reach the index as pip is set up to, pip does it.
define install
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --editable '$(1)' || $(BIN)/python -m pip install --editable '$(1)'
	$(BIN)/uv pip check --python $(BIN)/python --quiet
endef

.PHONY: demo test chaos three-nodes test-up statistics real-report bench bench-plan bench-pools test-peers
.PHONY: test-harbor clean

.venv/demo: pyproject.toml
	$(call install,.)
	touch $@

.venv/test: pyproject.toml
	$(call install,.[test])
	touch $@ .venv/demo

demo: .venv/demo
	$(BIN)/oeb benchmark --providers pdftext --out runs corpus=sample

test: .venv/test
	$(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

chaos: .venv/test
	OEB_CHAOS_ROUNDS=50 $(BIN)/python -m pytest -q -m chaos tests --timeout 1200 $(ARGS)

three-nodes: .venv/test
	OEB_THREE_NODES=1 $(BIN)/python -m pytest -q -s tests/test_three_nodes.py $(ARGS)

test-up: .venv/test
	OEB_UP=1 $(BIN)/python -m pytest -q -s tests/test_cluster_up.py $(ARGS)

statistics: .venv/test
	OEB_STATISTICS=1 $(BIN)/python -m pytest -q tests/scoring/test_summary.py $(ARGS)

bench-plan: .venv/test
	$(BIN)/python -m tests.bench.forecast

real-report: .venv/test
	OEB_REAL_REPORT=1 $(BIN)/python -m pytest -q -s tests/test_report.py -k real_corpus $(ARGS)

bench: .venv/test
	$(BIN)/python -m tests.bench $(ARGS)

bench-pools: .venv/test
	$(BIN)/python -m tests.bench.pools

# The published scorers are kept where `make bench` keeps them; one needs Python 3.13: uv finds one or fetches it, or
# OEB_PEER_PYTHON names it.
test-peers: .venv/test
	OEB_PEERS=$(CURDIR)/.bench $(BIN)/python -m pytest -q tests/scoring/test_peers.py $(ARGS)

# The real Harbor has its own virtual environment, since it needs a later Python: uv finds one or fetches it, or
# HARBOR_PYTHON names it.
HARBOR_PYTHON ?= >=3.12
.venv-harbor/done: .venv/test
	$(BIN)/uv venv --quiet --clear --python '$(HARBOR_PYTHON)' .venv-harbor
	$(BIN)/uv pip install --quiet --python .venv-harbor/bin/python harbor==0.25.0
	touch $@

test-harbor: .venv-harbor/done
	OEB_HARBOR=$(CURDIR)/.venv-harbor $(BIN)/python -m pytest -q tests/harbor $(ARGS)

clean:
	rm -rf .venv .venv-harbor .bench
