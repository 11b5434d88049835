#!/usr/bin/env bash
# Plants each bug of scripts/mutants.txt in a copy of the planner, one at a time, and demands that the property tests
# notice it. A bug that no longer applies, does not compile or is not noticed fails the script.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r Cargo.toml Cargo.lock clippy.toml crates "$copy"
# The same place for every copy and for the dependencies already built.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
export STEPWELL_CASES="${STEPWELL_MUTANT_CASES:-1500}" RUST_BACKTRACE=0
# A caught bug prints its counterexample; only whether it was caught matters here.
suite=(cargo test --quiet -p stepwell-formats --test properties)

cd "$copy"
"${suite[@]}" >"$copy/out" 2>&1 || { tail -n 40 "$copy/out"; echo "the tests fail without any planted bug"; exit 1; }

planted=0 missed=0
while IFS='|' read -r name file edit; do
  case $name in '' | '#'*) continue ;; esac
  name=$(xargs <<<"$name") file="crates/core/src/$(xargs <<<"$file")"
  cp "$root/$file" "$file.kept"
  sed -i -E "$edit" "$file"
  if cmp -s "$file" "$file.kept"; then echo "no longer applies: $name"; exit 1; fi
  if ! "${suite[@]}" --no-run >"$copy/out" 2>&1; then tail -n 20 "$copy/out"; echo "does not compile: $name"; exit 1; fi
  planted=$((planted + 1))
  if "${suite[@]}" >"$copy/out" 2>&1; then
    echo "NOT CAUGHT: $name"
    missed=$((missed + 1))
  else
    echo "caught: $name ($(grep -om1 -E 'seed [0-9]+' "$copy/out" || echo 'without a seed'))"
  fi
  mv "$file.kept" "$file"
  touch "$file"
done <"$root/scripts/mutants.txt"
echo "$((planted - missed)) of $planted planted bugs caught"
[ "$missed" -eq 0 ]
