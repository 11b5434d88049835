#!/usr/bin/env bash
# Builds every package from a binary, installs each into an empty place as its users do, and makes a first run there.
# Prints the time from the first command to the first finished run.
# Usage: try.sh [BINARY]     (with TWICE=1 it also builds everything again and compares the bytes)
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
binary=${1:-${STEPWELL_BINARY:-target/debug/stepwell}}
home=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill "$server" && wait "$server" || true; }; rm -rf "$home"' EXIT
# Compression costs more than everything else here, and the packages are thrown away.
export PACKAGE_COMPRESSION=1 npm_config_update_notifier=false
unset STEPWELL_URL STEPWELL_KEY STEPWELL_DATA STEPWELL_DATABASE STEPWELL_CONFIG

bash scripts/package.sh "$binary" "$home/packages" >"$home/log" || { cat "$home/log" >&2; exit 1; }
if [ -n "${TWICE:-}" ]; then
  bash scripts/package.sh "$binary" "$home/again" >/dev/null
  diff -u "$home/packages/SHA256SUMS" "$home/again/SHA256SUMS" || { echo "two builds differ" >&2; exit 1; }
  echo "two builds of every package have the same bytes"
  # A release binary knows its commit.
  built="$(git rev-parse --short=12 HEAD) $(TZ=UTC0 git log -1 --format=%cd --date=format-local:%F)"
  "$binary" --version | grep -F "($built)"
fi
packages=$home/packages

cat >"$home/hello.yaml" <<'YAML'
name: hello
tasks:
  greet: {tool: echo, args: {text: "Hello, {{input.name}}!"}}
output: "{{tasks.greet.body.text}}"
YAML

# PATH COMMAND: installs in an empty folder with an empty home, and runs a workflow with what it installed.
try() {
  local name=$1 install=$2 program=$3 start
  mkdir -p "$home/$name/home"
  cp "$home/hello.yaml" "$home/$name"
  start=$(date +%s%N)
  (
    cd "$home/$name"
    export HOME=$PWD/home
    eval "$install"
    said=$(eval "$program run hello.yaml --input name=Ann --quiet")
    [ "$said" = '"Hello, Ann!"' ] || { echo "$name printed $said" >&2; exit 1; }
    eval "$program --version" | grep -q '^stepwell [0-9]'
  )
  echo "$name: $((($(date +%s%N) - start) / 1000000)) ms from the first command to the first finished run"
}

# Without an index: the program is in the wheel, and httpx is for the client only.
try wheel "python3 -m venv venv && venv/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps \
  '$packages'/stepwell-*linux*.whl" venv/bin/stepwell
try npm "npm install --loglevel=error --no-audit --no-fund --offline --omit=optional --prefix . \
  '$packages'/stepwell-[0-9]*.tgz '$packages'/stepwell-linux-*-[0-9]*.tgz" node_modules/.bin/stepwell
try debian "dpkg-deb -x '$packages'/stepwell_*.deb root" root/usr/bin/stepwell
try archive "tar -xzf '$packages'/stepwell-linux-*.tar.gz" ./stepwell

# npm's program passes signals on and ends as the binary ends.
data=$home/npm/data
"$home/npm/node_modules/.bin/stepwell" serve --listen 127.0.0.1:0 --data "$data" >/dev/null 2>&1 &
server=$!
until [ -s "$data/server.url" ]; do kill -0 "$server"; sleep 0.05; done
url=$(cat "$data/server.url")

# The health check of the container, against a server as the container has one.
check=$(sed -n '/^HEALTHCHECK/,/^ENTRYPOINT/s/.*CMD \(\[.*\]\)$/\1/p' deploy/container/Containerfile.distroless)
healthy() {
  STEPWELL_DATA=$data python3 - "$check" "$binary" "$1" <<'PYTHON'
import json, subprocess, sys
words = [word.replace("http://127.0.0.1:7070", sys.argv[3]) for word in json.loads(sys.argv[1])]
sys.exit(subprocess.run([sys.argv[2], *words[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode)
PYTHON
}
healthy "$url"
kill "$server"
wait "$server" || { echo "npm's program did not end with the binary: $?" >&2; exit 1; }
server=
if healthy "$url"; then
  echo "the health check does not notice a stopped server" >&2
  exit 1
fi
echo "the container's health check tells a server from none"

# What the Debian package contains, beside the program.
unit=$home/debian/root/usr/lib/systemd/system/stepwell.service
grep -q '^ExecStart=/usr/bin/stepwell serve' "$unit"
[ "$(stat -c %a "$home/debian/root/etc/stepwell/environment")" = 600 ]
gzip -dc "$home/debian/root/usr/share/man/man1/stepwell.1.gz" | grep -q '^.TH stepwell'
if dpkg-deb -c "$packages"/stepwell_*.deb | grep -v ' root/root '; then
  echo "files of the package belong to another user than root" >&2
  exit 1
fi
for script in postinst prerm postrm; do
  dpkg-deb --ctrl-tarfile "$packages"/stepwell_*.deb | tar -xO "./$script" | sh -n
done

# No package runs anything when it is installed.
for package in "$packages"/*.tgz; do
  if tar -xzOf "$package" package/package.json 2>/dev/null | grep -q '"scripts"'; then
    echo "$package has scripts" >&2
    exit 1
  fi
done

python3 scripts/package/chart.py
python3 - "$packages"/*.cdx.json <<'PYTHON'
import json, sys
with open(sys.argv[1]) as file:
    bom = json.load(file)
refs = {one["bom-ref"] for one in bom["components"]} | {bom["metadata"]["component"]["bom-ref"]}
assert len(refs) == len(bom["components"]) + 1, "a reference is there twice"
assert all(needed in refs for one in bom["dependencies"] for needed in one["dependsOn"]), "a dependency is missing"
names = {one["name"] for one in bom["components"]}
assert {"rusqlite", "rustls", "stepwell-core", "react"} <= names, "what the program has is not listed"
assert "proptest" not in names, "what only tests use is listed"
unlicensed = [one["name"] for one in bom["components"] if "licenses" not in one]
assert not unlicensed, f"without a license: {unlicensed}"
print(f"SBOM: {len(bom['components'])} components, each with a license")
PYTHON
if grep -n "@SHA256_linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@\|@VERSION@" "$packages/stepwell.rb"; then
  echo "the formula has no digest for this platform" >&2
  exit 1
fi
