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

part "what tests need" bash scripts/setup.sh
part "dashboard, built" make --no-print-directory ui
part "dashboard, its logic" npm --prefix ui test --silent
part "format" cargo fmt --all --check
part "lint" cargo clippy --workspace --all-targets --quiet -- -D warnings
part "build" cargo test --workspace --no-run --quiet
# The binary is there now: nobody builds it once more with other features.
binary=STEPWELL_BINARY=$(realpath "${CARGO_TARGET_DIR:-target}/debug/stepwell")
part "clients and servers of MCP" bash scripts/mcp-install.sh
part "dashboard, in a browser" npm --prefix ui run --silent e2e
# What takes long has a part of its own, and prints what it covered.
part "tests" cargo test --workspace --quiet -- --skip the_planner_agrees --skip a_run_goes_on_under \
  --skip whatever_goes_wrong --skip the_same_seed --skip what_was_acknowledged_survives \
  --skip when_the_power_goes --skip a_store_that_ --skip whatever_happens
part "simulation" cargo test --quiet --workspace --test simulation -- --nocapture
part "power cuts" cargo test --quiet --workspace --test power_cut -- --nocapture
part "kill -9" cargo test --quiet --workspace --test kill -- --nocapture
part "three nodes and everything that can happen to them" cargo test --quiet --workspace --test chaos -- --nocapture
# The suites that can run on either store, once more.
on_postgres() {
  STEPWELL_TEST_STORE=postgres cargo test --quiet --workspace "$@"
}
for suite in running durable client server graph live otlp; do
  part "$suite, on PostgreSQL" on_postgres --test "$suite"
done
part "kill -9, on PostgreSQL" on_postgres --test kill -- --nocapture
part "API against its description" env "$binary" bash scripts/schemathesis.sh short
part "MCP with clients of others" env "$binary" bash scripts/mcp.sh
part "properties" cargo test --quiet --workspace --test properties -- --nocapture
part "planted bugs" bash scripts/mutants.sh
echo "── all: $((SECONDS - total)) s"
