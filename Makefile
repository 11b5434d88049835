# Start with `make run`. While you work: `make quick`. Before you push: `make test`. CONTRIBUTING.md says what each proves.
CRATES = $(notdir $(wildcard crates/*))

.PHONY: run setup quick test check deny package ui lint-ui bench soak mutants update test-ui $(CRATES:%=test-%)

CARGO ?= cargo
# The property tests' cases per dialect; `make soak` and CI can ask for more.
export STEPWELL_CASES ?= 8000

# Builds the server and runs it on the embedded store, until ^C. Pass options in ARGS: ARGS="--listen 127.0.0.1:8080".
# Without Node, the server has a placeholder page instead of the dashboard.
run:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory ui; else echo "no Node: building without the dashboard"; fi
	$(CARGO) build -p stepwell
	target/debug/stepwell serve $(ARGS)

# Builds the dashboard into ui/dist, which becomes part of the binary. Does nothing if nothing changed.
ui: ui/dist/index.html

ui/node_modules/.installed: ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund
	touch $@

UI_SOURCES = $(shell find ui/src ui/public ui/index.html ui/vite.config.ts ui/tsconfig.json -type f 2>/dev/null)

ui/dist/index.html: ui/node_modules/.installed $(UI_SOURCES)
	cd ui && npm run build

# Installs what the tests need and this machine lacks. Prints each command first; without root, they use sudo.
setup:
	@bash scripts/setup.sh

# Format, lint and fast tests of the crates that differ from the main branch, committed or not. BASE names another commit.
quick:
	@bash scripts/quick.sh

# What CI runs. Prints the time of each part.
test:
	@bash scripts/test.sh

# All tests of one crate, such as `make test-engine`. Choose some with ARGS="--test running".
$(filter-out test-cli,$(CRATES:%=test-%)): test-%:
	$(CARGO) test -p stepwell-$* $(ARGS)

test-cli:
	$(CARGO) test -p stepwell $(ARGS)

# The dashboard's unit tests.
test-ui: ui/node_modules/.installed
	npm --prefix ui test --silent -- $(ARGS)

# Format and lint; runs no test. Without Node, the dashboard is left out.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory lint-ui; else echo "no Node: dashboard not checked"; fi

lint-ui: ui/node_modules/.installed
	npm --prefix ui run --silent lint

# Licences, sources and duplicate versions of dependencies, by deny.toml. ADVISORIES=1 also checks for known
# vulnerabilities. Their database is a git repository, which machines that reach only package registries cannot fetch, so
# the GitHub workflow sets it and `make test` elsewhere does not.
deny:
	$(CARGO) deny --locked check --hide-inclusion-graph licenses bans sources $(if $(ADVISORIES),advisories)

# How fast this is on this disk, beside the disk's own limits; and what one decision costs.
bench:
	$(CARGO) build --release -p stepwell
	target/release/stepwell bench
	$(CARGO) bench -p stepwell-core --bench planner

# Builds every package from the release binary into target/packages/release, installs each into an empty place and makes a
# first run there. Publishes nothing; docs/releasing.md has the rest.
package: ui
	$(CARGO) build --locked --release -p stepwell
	bash scripts/package.sh target/release/stepwell target/packages/release
	TWICE=1 bash scripts/package/try.sh target/release/stepwell

# Long runs of what `make test` does in short.
soak:
	bash scripts/schemathesis.sh long
	STEPWELL_CASES=400000 $(CARGO) test -p stepwell-formats --test properties -- --nocapture
	PROPTEST_CASES=200000 $(CARGO) test -p stepwell-formats --test hostile
	PROPTEST_CASES=200000 $(CARGO) test -p stepwell-core
	STEPWELL_SIM_SEEDS=100000 $(CARGO) test -p stepwell-engine --test simulation -- --nocapture
	STEPWELL_CUTS=4000 $(CARGO) test -p stepwell-store --test power_cut -- --nocapture
	STEPWELL_KILLS=100 $(CARGO) test -p stepwell --test kill -- --nocapture
	STEPWELL_TEST_STORE=postgres STEPWELL_KILLS=100 $(CARGO) test -p stepwell --test kill -- --nocapture
	STEPWELL_CHAOS_SECONDS=600 $(CARGO) test -p stepwell --test chaos -- --nocapture
	bash scripts/versions.sh
	$(CARGO) build --release -p stepwell
	target/release/stepwell bench history --runs 1000000
	target/release/stepwell bench sleepers --runs 1000000
	python3 scripts/planted.py

# Plants each known bug in a copy of the code and demands that the tests notice.
mutants:
	python3 scripts/planted.py

# Rewrites expected outputs; read the diff.
update:
	UPDATE=1 $(CARGO) test -p stepwell-formats --test cases
