# make test | make demo | make check need nothing but Python >= 3.11 and make; each does its own set-up.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests start hundreds of processes: each would compile the same files again.
unexport PYTHONDONTWRITEBYTECODE

# A development environment, made anew when the pins change. A half-made one is never taken for a whole one.
$(VENV)/installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV): about a minute."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

.PHONY: setup test together soak soak-beside soak-alone prove mutants check demo bench screenshots reference lock clean

setup: $(VENV)/installed  ## the virtual environment

test: setup  ## every promise, on real servers
	$(BIN)/python -m tests.flaky -n 3 --dist loadfile --no-loadscope-reorder -m "not soak and not prove" $(ARGS)  # three on two cores: much of it waits

together: setup  ## make test, and what of make soak is not long, in one go: CI's way
	$(BIN)/python -m tests.flaky -n 4 --dist loadfile --no-loadscope-reorder -m "not prove and not long" --durations=12 $(ARGS)

soak: soak-beside soak-alone  ## browsers, processes, faults and floods

soak-beside: setup
	$(BIN)/python -m tests.flaky -n 3 --dist loadfile --no-loadscope-reorder -m "soak and not prove and not alone" --durations=12 $(ARGS) || [ $$? = 5 ]  # 5: nothing to run

soak-alone: setup
	$(BIN)/python -m tests.flaky -m "soak and alone and not prove" --durations=12 $(ARGS) || [ $$? = 5 ]

prove: setup  ## the long form of the proof, MINUTES for each of its tests (10), LAYER alone; it adds up in .proof
	@PROVE_MINUTES="$${MINUTES:-10}" $(BIN)/python -m tests.proof.asked "$$LAYER"  # one word; before servers start
	PROVE_MINUTES=$(or $(MINUTES),10) $(BIN)/python -m pytest tests/proof/$(LAYER) -m prove -s --timeout 0 $(ARGS); proved=$$?; \
	  $(BIN)/python -m tests.proof; exit $$proved

mutants: setup  ## the share of random faults of the domain that its tests notice; SAMPLE faults (400), chosen by SEED (1)
	$(BIN)/python -m tests.proof.mutants --sample $(or $(SAMPLE),400) --seed $(or $(SEED),1)  # about ten minutes

check: setup  ## style, types, floors, migrations, deployment
	sh .ci/check $(BIN)

demo: setup  ## the whole service on embedded servers; ARGS=--exit ends by itself
	$(BIN)/python manage.py sandbox --demo $(ARGS)

bench: setup  ## docs/performance.md anew, in its short form; NAME=drain, intent, webhook, rules, refusals, reasons, local_sqs, admin_pages or idle: that benchmark, with its ARGS
	$(if $(NAME),$(foreach one,$(NAME),$(BIN)/python benchmarks/$(one).py $(ARGS) &&) true,$(BIN)/python -m benchmarks.performance $(or $(ARGS),--short))

screenshots: setup  ## docs/screenshots anew, from the demo; needs a Chromium
	$(BIN)/python -m tests.browser.screenshots $(ARGS)

reference: setup  ## docs/reference.md and docs/redrive.schema.json anew, from the code
	$(BIN)/python -m tests.house.reference

lock: setup  ## the pins, from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header -c requirements.txt pyproject.toml --group dev -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header -c requirements.txt pyproject.toml --extra otel -o requirements-otel.txt

clean:  ## everything make made
	@token=$$(sed -n 's/.*"token": "\([0-9a-f]*\)".*/\1/p' .sandbox/settings.json 2>/dev/null); \
	  [ -z "$$token" ] || rm -rf "/tmp/redrive-sandbox-$$token" "$${TMPDIR:-/tmp}/redrive-sandbox-$$token"
	rm -rf $(VENV) .sandbox static .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
