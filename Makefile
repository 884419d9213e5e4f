# Each target first creates the virtual environment, if it is missing. You need Python >= 3.11 and make.
# docs/development.md describes the targets.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests start hundreds of processes. Without bytecode files, each process would compile the same source files again.
unexport PYTHONDONTWRITEBYTECODE

# Create the virtual environment, again if requirements-dev.txt has changed. The file `installed` is written last, so
# that an interrupted installation starts again.
$(VENV)/installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name it: make PYTHON=python3.12 ...")'
	@echo "Setting up $(VENV): about a minute."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

.PHONY: setup test together soak soak-beside soak-alone prove mutants check demo bench screenshots reference lock clean

setup: $(VENV)/installed  ## create the virtual environment

test: setup  ## run the tests that are not slow, on real PostgreSQL, Valkey and a local SQS
	$(BIN)/python -m tests.flaky -n 2 --dist loadfile --no-loadscope-reorder -m "not soak and not prove" $(ARGS)

together: setup  ## run the tests of make test and make soak, without tests marked long; CI runs this
	$(BIN)/python -m tests.flaky -n 4 --dist loadfile --no-loadscope-reorder -m "not prove and not long" --durations=12 $(ARGS)

soak: soak-beside soak-alone  ## run the slow tests: browsers, killed processes, faults, high load

soak-beside: setup
	$(BIN)/python -m tests.flaky -n 3 --dist loadfile --no-loadscope-reorder -m "soak and not prove and not alone" --durations=12 $(ARGS) || [ $$? = 5 ]  # 5: nothing to run

soak-alone: setup
	$(BIN)/python -m tests.flaky -m "soak and alone and not prove" --durations=12 $(ARGS) || [ $$? = 5 ]

prove: setup  ## try to break the promises of the README (docs/proof.md); MINUTES for each test (10), LAYER: only this layer
	@PROVE_MINUTES="$${MINUTES:-10}" $(BIN)/python -m tests.proof.asked "$$LAYER"  # refuses wrong values before servers start
	PROVE_MINUTES=$(or $(MINUTES),10) $(BIN)/python -m pytest tests/proof/$(LAYER) -m prove -s --timeout 0 $(ARGS); proved=$$?; \
	  $(BIN)/python -m tests.proof; exit $$proved

mutants: setup  ## measure how many random faults the tests of reprocessing/domain notice: SAMPLE faults (400), chosen by SEED (1)
	$(BIN)/python -m tests.proof.mutants --sample $(or $(SAMPLE),400) --seed $(or $(SEED),1)  # about ten minutes

check: setup  ## check style, types, imports between layers, migrations, settings and generated files
	sh .ci/check $(BIN)

demo: setup  ## run the service with PostgreSQL, Valkey and a local SQS, and redrive a DLQ; ARGS=--exit ends by itself
	$(BIN)/python manage.py sandbox --demo $(ARGS)

bench: setup  ## measure four scenarios and write docs/performance.md; NAME=drain, intent, webhook, rules, refusals, reasons, local_sqs, admin_pages or idle: run that benchmark, with its ARGS
	$(if $(NAME),$(foreach one,$(NAME),$(BIN)/python benchmarks/$(one).py $(ARGS) &&) true,$(BIN)/python -m benchmarks.performance $(or $(ARGS),--short))

screenshots: setup  ## take docs/screenshots again, from the demo; needs Chromium
	$(BIN)/python -m tests.browser.screenshots $(ARGS)

reference: setup  ## write docs/reference.md, docs/openapi.json, docs/redrive.schema.json and docs/deployment from the code
	$(BIN)/python -m tests.house.reference

lock: setup  ## update the pinned requirements from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header -c requirements.txt pyproject.toml --group dev -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header -c requirements.txt pyproject.toml --extra otel -o requirements-otel.txt

clean:  ## delete everything that make created
	@token=$$(sed -n 's/.*"token": "\([0-9a-f]*\)".*/\1/p' .sandbox/settings.json 2>/dev/null); \
	  [ -z "$$token" ] || rm -rf "/tmp/redrive-sandbox-$$token" "$${TMPDIR:-/tmp}/redrive-sandbox-$$token"
	rm -rf $(VENV) .sandbox static .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
