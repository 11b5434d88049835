#!/usr/bin/env bash
# Nodes of two versions on one database, under the chaos test: the first node of three is the program of an earlier commit
# (`OLDER`, by default the first that was tried so), the others are this one. Part of `make soak`.
set -euo pipefail
cd "$(dirname "$0")/.."

older=${OLDER:-$(git log --format=%H --reverse -- crates/cli/tests/chaos/main.rs | head -n 1)}
tree=target/older/$older
if [ ! -d "$tree" ]; then
  git worktree prune
  git worktree add --quiet --detach "$tree" "$older"
fi
# With its own build directory: the two have the same names.
cargo build --quiet --manifest-path "$tree/Cargo.toml" --target-dir target/older/build -p stepwell
STEPWELL_CHAOS_OLDER=$PWD/target/older/build/debug/stepwell \
  cargo test --workspace --test chaos -- --nocapture
