#!/usr/bin/env bash
# Installs what the tests need and this machine does not have: Python with venv, for oracles and clients from PyPI.
set -euo pipefail

if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq python3 python3-venv
fi
python3 --version
