# Everything a person or a build server runs. `make` alone lists the targets.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input
PO := $(shell find src -name '*.po')
# Changing one of these changes the installed package: its metadata, its script, its compiled parts.
PACKAGE := pyproject.toml hatch_build.py $(PO) $(shell find src -name '*.c')
say = @printf '%s\n' '-- $(1)'

# A shell that works on another project must not lead ours astray.
unexport DJANGO_SETTINGS_MODULE PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help packages packages-of-rest demo test test-all test-fast mutations bench check setup messages requirements openapi screenshots deb lock

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s%s\n", $$1, $$2 }' Makefile

demo: .venv/run.stamp  ## simulated OLTs, web and pollers, with one command; BIND=127.0.0.1:9000 changes the address
	@exec $(BIN)/facho demo $(if $(BIND),--bind $(BIND))

test: packages check  ## what a push needs, in ten minutes: all tests, of the large ones a small cell; SQL on PostgreSQL too
	$(call say,the tests that a push needs)
	@$(BIN)/python tools/tiers.py push

test-all: packages packages-of-rest .venv/dev.stamp  ## what `make test` leaves out, in forty: crashes, storms, roles, new random examples; MINUTES=20 ends it sooner
	$(call say,the tests that a push leaves out)
	@$(BIN)/python tools/tiers.py rest $(if $(MINUTES),--minutes $(MINUTES))

test-fast: .venv/dev.stamp  ## in less than a minute: rules, vendors, SNMP and the repository itself; no server, no database
	@$(BIN)/pytest --quiet -m 'not slow' tests/polling tests/architecture

mutations: .venv/dev.stamp  ## break the product in every way of tests/mutations: a test of the requirement must notice
	@$(BIN)/python -m tools.mutations

bench: .venv/dev.stamp  ## measure what polling costs; PEERS=1 adds Zabbix, BENCH=values measures a part alone; three quarters of an hour
	@$(BIN)/python -m bench $(if $(PEERS),--peers) $(BENCH)

check: .venv/dev.stamp  ## format, lint, types, import contracts, missing migrations
	$(call say,format)
	@$(BIN)/ruff format --quiet --check .
	$(call say,lint)
	@$(BIN)/ruff check --quiet .
	$(call say,types)
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary -p tools
	$(call say,import contracts)
	@report=$$($(BIN)/lint-imports --no-logo --no-cache) || { printf '%s\n' "$$report"; exit 1; }
	$(call say,migrations)
	@DATABASE_URL=sqlite:///:memory: $(BIN)/python manage.py makemigrations --check --dry-run --skip-checks > /dev/null \
	  || { echo 'A model changed without a migration: $(BIN)/python manage.py makemigrations writes it'; exit 1; }

# Before .venv: the compiler is one of them.
packages:
	@$(PYTHON) tools/system_packages.py

# Without them some tests are skipped and say so.
packages-of-rest:
	-@$(PYTHON) tools/system_packages.py rest

setup: .venv/dev.stamp  ## only .venv, with everything for development

messages: .venv/dev.stamp  ## collect the texts to translate into the catalogues
	@$(BIN)/python tools/messages.py

requirements: .venv/dev.stamp  ## mark in docs/requirements.md what the tests show
	@$(BIN)/python tools/requirements.py

openapi: .venv/dev.stamp  ## write docs/openapi.yaml again from the API as it is
	@FACHO_LANGUAGE=en DATABASE_URL=sqlite:///:memory: $(BIN)/python manage.py spectacular --skip-checks --fail-on-warn --file docs/openapi.yaml

screenshots: .venv/dev.stamp  ## take the pictures of the README again, from the demo in a browser
	@$(BIN)/pytest --quiet tests/browser/test_main_pages_in_browser.py -k pictures
	@cp artifacts/readme/*.png docs/images/

deb: .venv/run.stamp  ## a Debian package of this checkout in dist/, for the Debian and the architecture it is built on
	@$(BIN)/python -m tools.debian_package dist

lock:  ## write requirements/ again from pyproject.toml, keeping the versions that still fit
	@tools/lock

.venv/run.stamp: requirements/run.txt $(PACKAGE)
	@tools/create-venv $(PYTHON)
	$(call say,installing the locked packages into .venv)
	@$(PIP) --require-hashes -r requirements/run.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv/dev.stamp: requirements/dev.txt $(PACKAGE)
	@tools/create-venv $(PYTHON)
	$(call say,installing the locked packages for development into .venv)
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ .venv/run.stamp
