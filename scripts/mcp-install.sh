#!/usr/bin/env bash
# Installs clients and servers of MCP that this project did not write, at the versions that are pinned, where tests look for
# them: below the target directory, in mcp-python and mcp-node. Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
venv=$target/mcp-python
if ! cmp -s scripts/mcp/requirements.txt "$venv/pinned"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r scripts/mcp/requirements.txt
  cp scripts/mcp/requirements.txt "$venv/pinned"
fi
node=$target/mcp-node
if ! cmp -s scripts/mcp/package-lock.json "$node/pinned"; then
  rm -rf "$node"
  mkdir -p "$node"
  cp scripts/mcp/package.json scripts/mcp/package-lock.json "$node"
  # Not `ci`: it does not take a lock file without the addresses of packages.
  npm install --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error
  cp scripts/mcp/package-lock.json "$node/pinned"
fi
