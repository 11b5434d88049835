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
part "tests" cargo test --workspace --quiet
part "properties" cargo test -p stepwell-formats --test properties -- --nocapture --include-ignored
part "planted bugs" bash scripts/mutants.sh
echo "── all: $((SECONDS - total)) s"
