#!/usr/bin/env bash
# Tests the SDKs and the extension for editors against the real binary (STEPWELL_BINARY, else the debug build), and
# generates clients from its description of the API with generators of others.
# Usage: clients.sh python|typescript|editor|generated
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export STEPWELL_BINARY=${STEPWELL_BINARY:-$target/debug/stepwell}

# Installs the packages that the lock file of a folder names, unless they are there.
packages() {
  if ! cmp -s "$1/package-lock.json" "$1/node_modules/.pinned"; then
    # Not `ci`: it does not take a lock file without the addresses of packages.
    npm install --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error
    cp "$1/package-lock.json" "$1/node_modules/.pinned"
  fi
}

# An environment for Python with the packages that a file pins, unless it is there.
environment() {
  if ! cmp -s "$2" "$1/pinned"; then
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    cp "$2" "$1/pinned"
  fi
}

# Runs a generator that must not warn.
silently() {
  local told
  told=$("$@" 2>&1) || { echo "$told" >&2; return 1; }
  if grep -qi warning <<<"$told"; then
    echo "$told" >&2
    return 1
  fi
}

case ${1:-} in
  python)
    venv=$target/sdk-python
    environment "$venv" sdk/python/requirements.txt
    # As somebody installs it: from the wheel, not from the sources.
    "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$target/wheels" sdk/python
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$target"/wheels/stepwell-*.whl
    cd sdk/python
    "$venv/bin/mypy"
    "$venv/bin/pytest" -q
    ;;
  typescript)
    packages sdk/typescript
    npm --prefix sdk/typescript test --silent
    ;;
  editor)
    packages editors/vscode
    npm --prefix editors/vscode test --silent
    npm --prefix editors/vscode run --silent package
    ;;
  generated)
    venv=$target/generated-python
    environment "$venv" scripts/generated/requirements.txt
    # Node looks for packages beside and above the programs that use them.
    made=$target/generated
    mkdir -p "$made"
    cp scripts/generated/* "$made"
    packages "$made"
    cd "$made"
    "$STEPWELL_BINARY" schema api >openapi.json
    rm -rf python client
    PATH=$venv/bin:$PATH silently openapi-python-client generate --path openapi.json --output-path python --overwrite \
      --config python.yaml --fail-on-warning
    MYPYPATH=python "$venv/bin/mypy" --strict use.py
    export NPM_CONFIG_UPDATE_NOTIFIER=false
    silently node_modules/.bin/openapi-typescript openapi.json -o types.ts
    silently node_modules/.bin/openapi-ts -i openapi.json -o client
    node_modules/.bin/tsc -p .
    ;;
  *)
    echo "usage: clients.sh python|typescript|editor|generated" >&2
    exit 2
    ;;
esac
