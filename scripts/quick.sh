#!/usr/bin/env bash
# Format, lint and fast tests of what differs from the main branch: commits of this branch, the working tree and files not
# yet added. Leaves out dependants of a changed crate, long suites and PostgreSQL; `make test` has them.
set -euo pipefail
cd "$(dirname "$0")/.."

base=HEAD
for name in ${BASE:-origin/HEAD origin/main main}; do
  if base=$(git merge-base HEAD "$name" 2>/dev/null); then break; else base=HEAD; fi
done

crates=() all='' ui='' documents=''
while read -r file; do
  case $file in
    Cargo.toml | Cargo.lock | rust-toolchain.toml | clippy.toml | rustfmt.toml) all=yes ;;
    crates/*/*)
      crate=${file#crates/}
      crate=${crate%%/*}
      if [ -d "crates/$crate" ] && [[ " ${crates[*]} " != *" $crate "* ]]; then crates+=("$crate"); fi
      ;;
    ui/*) ui=yes ;;
    *) documents=yes ;;
  esac
done < <(git diff --name-only "$base"; git ls-files --others --exclude-standard)
[ -z "$all" ] || crates=(all)
echo "changed since $(git rev-parse --short "$base"): crates: ${crates[*]:-none}${ui:+; dashboard}${documents:+; documents}"

# One crate per command: several at once would unite their features and build the dependencies anew for each combination.
for crate in "${crates[@]}"; do
  packages=(-p "stepwell-$crate")
  fast=(--lib)
  case $crate in
    all)
      packages=(--workspace)
      fast+=(--bins --test cases --test rules --test recording --test tidy --test docs)
      ;;
    cli)
      packages=(-p stepwell)
      fast=(--bins --test tidy --test docs)
      ;;
    formats) fast+=(--test cases --test rules) ;;
    engine) fast+=(--test recording) ;;
  esac
  echo "── $crate"
  cargo fmt "${packages[@]/--workspace/--all}" --check
  cargo clippy --quiet "${packages[@]}" --all-targets -- -D warnings
  cargo test --quiet "${packages[@]}" "${fast[@]}"
done
if [ -n "$documents" ] && [[ " ${crates[*]} " != *" all "* && " ${crates[*]} " != *" cli "* ]]; then
  echo "── documents"
  cargo test --quiet -p stepwell --test tidy --test docs
fi
if [ -n "$ui" ]; then
  echo "── dashboard"
  make --no-print-directory lint-ui
  npm --prefix ui run --silent check
  make --no-print-directory test-ui
fi
echo "── total: $SECONDS s"
