#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: Python with venv, for oracles and clients from PyPI; PostgreSQL and
# PgBouncer, for the suites on a database (the service that the package starts is not used); Node and Chromium, for the
# dashboard, its browser tests, and MCP clients and servers; systemd-analyze, for the unit; cargo-deny, for licences and
# advisories.
#
# `setup.sh --missing` installs nothing and prints what is missing, on one line.
set -euo pipefail

# Pinned, because a new version may read deny.toml differently.
deny_version=0.20.2

packages=()
python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3 python3-venv)
command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || packages+=(postgresql)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || packages+=(pgbouncer)
command -v systemd-analyze >/dev/null || packages+=(systemd)
command -v npm >/dev/null || packages+=(nodejs npm)
command -v chromium >/dev/null || packages+=(chromium)
deny=yes
command -v cargo-deny >/dev/null || [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo-deny" ] || deny=

missing=("${packages[@]}")
[ -n "$deny" ] || missing+=(cargo-deny)
list=$(printf ', %s' "${missing[@]}")
list=${list:2}
if [ "${1:-}" = --missing ]; then
  echo "$list"
  exit
fi

# Prints a command before running it, so that a password prompt of sudo never comes unexplained.
run() {
  echo "running: $*"
  "$@"
}

if [ "${#missing[@]}" -eq 0 ]; then
  echo "nothing is missing"
else
  echo "missing: $list"
fi
if [ "${#packages[@]}" -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "no apt-get: install ${packages[*]} with this system's package manager, then run \`make setup\` again" >&2
    exit 1
  fi
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  run "${as_root[@]}" apt-get update -qq
  run "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"
fi
if [ -z "$deny" ]; then
  # It runs for a second, so an optimised build would cost minutes and save nothing.
  run env CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo install --quiet --locked --version "$deny_version" cargo-deny
fi
python3 --version
PATH="$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)" postgres --version
chromium --version
cargo deny --version
