#!/usr/bin/env bash
# Runs every suite in one build profile and prints how long each part took.
set -euo pipefail
cd "$(dirname "$0")/.."

total=$SECONDS
part() {
  local name=$1 start=$SECONDS
  shift
  echo "── $name"
  "$@"
  echo "── $name: $((SECONDS - start)) s"
}

# Root installs what is missing, as CI does. Others are asked to, because it takes sudo.
setup() {
  local missing
  missing=$(bash scripts/setup.sh --missing)
  if [ -z "$missing" ]; then
    return
  elif [ "$(id -u)" -eq 0 ]; then
    echo "missing: $missing; running make setup"
    make --no-print-directory setup
  else
    echo "missing: $missing; run \`make setup\` first" >&2
    return 1
  fi
}

part "setup" setup
part "dashboard: build" make --no-print-directory ui
part "dashboard: lint" npm --prefix ui run --silent lint
part "dashboard: unit tests" npm --prefix ui test --silent
part "format" cargo fmt --all --check
part "lint" cargo clippy --workspace --all-targets --quiet -- -D warnings
part "licences and advisories" make --no-print-directory deny
part "build" cargo test --workspace --no-run --quiet
# The binary exists now: no later part builds it again with other features.
binary=STEPWELL_BINARY=$(realpath "${CARGO_TARGET_DIR:-target}/debug/stepwell")
part "MCP clients and servers: install" bash scripts/mcp-install.sh
part "dashboard: browser tests" npm --prefix ui run --silent e2e
# The long suites are parts of their own and print what they covered.
part "workspace tests" cargo test --workspace --quiet -- --skip the_planner_agrees --skip a_run_goes_on_under \
  --skip whatever_goes_wrong --skip the_same_seed --skip what_was_acknowledged_survives \
  --skip when_the_power_goes --skip a_store_that_ --skip whatever_happens
part "simulation" cargo test --quiet --workspace --test simulation -- --nocapture
part "power cuts" cargo test --quiet --workspace --test power_cut -- --nocapture
part "kill -9" cargo test --quiet --workspace --test kill -- --nocapture
part "chaos: three nodes" cargo test --quiet --workspace --test chaos -- --nocapture
# The suites that run on either store, on PostgreSQL.
on_postgres() {
  STEPWELL_TEST_STORE=postgres cargo test --quiet --workspace "$@"
}
for suite in running durable client server graph live otlp; do
  part "PostgreSQL: $suite" on_postgres --test "$suite"
done
part "PostgreSQL: kill -9" on_postgres --test kill -- --nocapture
part "API against its description" env "$binary" bash scripts/schemathesis.sh short
part "MCP interoperability" env "$binary" bash scripts/mcp.sh
part "properties" cargo test --quiet --workspace --test properties -- --nocapture
part "planted bugs" bash scripts/mutants.sh
echo "── total: $((SECONDS - total)) s"
