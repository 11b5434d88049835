#!/usr/bin/env bash
# Builds the package of each SDK, installs it into an empty folder as its users do, runs the first steps of docs/sdk.md
# there, and looks for the run with the API. Nothing is published.
# Usage: quickstarts.sh [python|typescript|rust ...]     (all of them by default)
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
binary=${STEPWELL_BINARY:-$target/debug/stepwell}
home=$(mktemp -d)
packages=$target/packages
mkdir -p "$packages"
export STEPWELL_DATA=$home/data
unset STEPWELL_URL STEPWELL_KEY

# It says where it is as soon as it serves.
mkfifo "$home/said"
"$binary" serve --listen 127.0.0.1:0 >"$home/said" 2>"$home/log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$home"' EXIT
exec 3<"$home/said"
if ! read -r <&3; then
  cat "$home/log" >&2
  exit 1
fi

# The first block of this language in docs/sdk.md.
first_steps() {
  awk -v start="\`\`\`$1" '$0 == start { inside = 1; next } inside && /^```/ { exit } inside' docs/sdk.md
}

# An empty folder for a user of one SDK.
folder() {
  mkdir "$home/$1"
  echo "$home/$1"
}

python() {
  local in
  in=$(folder python)
  first_steps py >"$in/quickstart.py"
  python3 -m venv "$in/venv"
  "$in/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps -w "$packages" sdk/python
  "$in/venv/bin/pip" install --quiet --disable-pip-version-check "$packages"/stepwell-*.whl
  (cd "$in" && venv/bin/python quickstart.py)
}

typescript() {
  local in
  in=$(folder typescript)
  first_steps ts >"$in/quickstart.mjs"
  if [ ! -x sdk/typescript/node_modules/.bin/tsc ]; then
    npm install --prefix sdk/typescript --ignore-scripts --no-audit --no-fund --loglevel=error
  fi
  npm --prefix sdk/typescript run --silent build
  (cd sdk/typescript && npm pack --silent --pack-destination "$packages" >"$home/packed")
  cd "$in"
  npm install --silent --no-audit --no-fund --offline "$packages/$(cat "$home/packed")"
  node quickstart.mjs
  cd "$root"
}

rust() {
  local in
  in=$(folder rust)
  cargo package --quiet -p stepwell-client --no-verify --allow-dirty
  tar -xf "$target"/package/stepwell-client-0.1.0.crate -C "$in"
  mkdir "$in/src"
  first_steps rust >"$in/src/main.rs"
  cat >"$in/Cargo.toml" <<TOML
[package]
name = "quickstart"
edition = "2024"

[dependencies]
serde_json = "1"
stepwell-client = { path = "stepwell-client-0.1.0" }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
TOML
  # The versions that everything else was tested with; and what is compiled is kept for the next time.
  cp Cargo.lock "$in"
  (cd "$in" && CARGO_TARGET_DIR=$target/quickstart cargo run --quiet)
}

for sdk in "${@:-python typescript rust}"; do
  for one in $sdk; do
    "$one" | tee "$home/printed"
    grep -qx "completed Hello, Ann!" "$home/printed"
    # One run more than before, and it has completed.
    runs=$((${runs:-0} + 1))
    seen=$("$binary" runs --status completed --json | grep -o '"id":"run_' | wc -l)
    [ "$seen" = "$runs" ] || { echo "$one: the API shows $seen completed runs, not $runs" >&2; exit 1; }
  done
done
