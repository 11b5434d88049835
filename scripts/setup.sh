#!/usr/bin/env bash
# Installs what the tests need and this machine does not have: Python with venv, for oracles and clients from PyPI;
# PostgreSQL and PgBouncer, for the suites on a database; Node and Chromium, for the dashboard and the tests of it in a
# browser, and for clients and servers of MCP. The server that a package starts is not used.
set -euo pipefail

missing=()
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
command -v npm >/dev/null || missing+=(nodejs npm)
command -v chromium >/dev/null || missing+=(chromium)
if [ "${#missing[@]}" -gt 0 ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq "${missing[@]}"
fi
python3 --version
PATH="$PATH:$(printf '%s:' /usr/lib/postgresql/*/bin)" postgres --version
chromium --version
