# Everything lives in .venv; nothing outside the checkout is changed.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: demo test chaos clean

.venv/demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/test: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	$(BIN)/python -m pip check
	touch $@ .venv/demo

demo: .venv/demo  ## benchmark the sample corpus with the offline provider
	$(BIN)/oeb benchmark --providers pdftext --out runs

test: .venv/test  ## everything that must hold before a commit
	$(BIN)/python -m pytest -q $(ARGS)

chaos: .venv/test  ## kills at random moments, many rounds
	OEB_CHAOS_ROUNDS=10 $(BIN)/python -m pytest -q -m chaos tests --timeout 1200 $(ARGS)

clean:
	rm -rf .venv runs
