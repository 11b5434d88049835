#!/usr/bin/env bash
# Tests the SDKs and the extension for editors against the real binary (STEPWELL_BINARY, else the debug build).
# Usage: clients.sh python|typescript|editor
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

case ${1:-} in
  python)
    venv=$target/sdk-python
    if ! cmp -s sdk/python/requirements.txt "$venv/pinned"; then
      rm -rf "$venv"
      python3 -m venv "$venv"
      "$venv/bin/pip" install --quiet --disable-pip-version-check -r sdk/python/requirements.txt
      cp sdk/python/requirements.txt "$venv/pinned"
    fi
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
  *)
    echo "usage: clients.sh python|typescript|editor" >&2
    exit 2
    ;;
esac
