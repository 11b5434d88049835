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

part "format" cargo fmt --all --check
part "lint" cargo clippy --workspace --all-targets --quiet -- -D warnings
part "build" cargo test --workspace --no-run --quiet
# The properties have a part of their own, which prints what their cases covered.
part "tests" cargo test --workspace --quiet -- --skip the_planner_agrees --skip a_run_goes_on_under
part "properties" cargo test --quiet -p stepwell-formats --test properties -- --nocapture
part "planted bugs" bash scripts/mutants.sh
echo "── all: $((SECONDS - total)) s"
