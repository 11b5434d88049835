#!/usr/bin/env bash
# Tests the SDKs and the extension for editors against the real binary (STEPWELL_BINARY, else the debug build), and
# generates clients from its description of the API with third-party generators.
# Python: on the oldest and the newest version that this machine has. In one of the runs, the server stores in PostgreSQL.
# Usage: clients.sh python|typescript|editor|generated
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

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

# Makes an environment with the packages that a file pins, for an interpreter (default: python3), unless it is there.
environment() {
  if ! cmp -s "$2" "$1/pinned"; then
    rm -rf "$1"
    "${3:-python3}" -m venv "$1"
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

# The oldest and the newest Python of this machine, of those that the SDK supports.
interpreters() {
  local versions
  versions=$(pyenv root 2>/dev/null || true)/versions
  for python in python3 python3.{10..19} "$versions"/3.*/bin/python; do
    "$python" -c 'import sys; sys.version_info >= (3, 10) and print("%d.%d" % sys.version_info[:2], sys.executable)' \
      2>/dev/null || true
  done | sort -V -u -k 1,1 | sed -n '1p;$p' | cut -d ' ' -f 2 | uniq
}

# Prints the environment for this interpreter, with what the tests need and the wheel as somebody installs it.
for_python() {
  local venv
  venv=$target/sdk-python-$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  environment "$venv" sdk/python/requirements.txt "$1"
  local pip=("$venv/bin/pip" --quiet --disable-pip-version-check)
  "${pip[@]}" wheel --no-deps --no-build-isolation -w "$target/wheels" sdk/python
  "${pip[@]}" install --no-deps --force-reinstall "$target"/wheels/stepwell-*.whl
  echo "$venv"
}

# Starts a PostgreSQL that ends with this script, and sets SDK_TEST_DATABASE.
database() {
  local bin as=()
  bin=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)")
  cluster=$(mktemp -d)
  # PostgreSQL refuses to run as root.
  if [ "$(id -u)" = 0 ]; then
    chown postgres "$cluster"
    as=(runuser -u postgres --)
  fi
  stop=("${as[@]}" "$bin/pg_ctl" -D "$cluster/data" -m immediate -s stop)
  trap '"${stop[@]}"; rm -rf "$cluster"' EXIT
  (
    cd "$cluster"
    "${as[@]}" "$bin/initdb" -D "$cluster/data" -N -A trust -U postgres >"$cluster/log"
    "${as[@]}" "$bin/pg_ctl" -D "$cluster/data" -s -w -l "$cluster/data/log" -o "-c listen_addresses= -k $cluster" start
  )
  export SDK_TEST_DATABASE="postgres://postgres@${cluster//\//%2F}/postgres"
}

case ${1:-} in
  python)
    mapfile -t pythons < <(interpreters)
    for python in "${pythons[@]}"; do
      "$python" --version
      venv=$(for_python "$python")
      (cd sdk/python && "$venv/bin/mypy" && "$venv/bin/pytest" -q)
    done
    database
    (cd sdk/python && "$venv/bin/pytest" -q tests/test_client.py)
    ;;
  typescript)
    packages sdk/typescript
    npm --prefix sdk/typescript test --silent
    database
    (cd sdk/typescript && node --test dist/test/client.test.js)
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
    python3 "$root/scripts/sdk_types.py" --check <openapi.json
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
