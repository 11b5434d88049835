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
part "MCP clients and servers: install" bash scripts/mcp-install.sh
# Every suite, in two lanes; each prints its own time.
part "tests" python3 scripts/suites.py
echo "── total: $((SECONDS - total)) s"
