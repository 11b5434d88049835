#!/usr/bin/env bash
# Sends requests that the API description allows and requests that it does not: no 5xx, and every response as described.
# `short` takes about a minute and is part of `make test`; `long` is part of `make soak`. Both use a fixed seed.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-short}" in
  short) examples=8 phases=coverage,fuzzing ;;
  long) examples=150 phases=examples,coverage,fuzzing,stateful ;;
  *) echo "usage: $0 short|long" >&2; exit 2 ;;
esac
seed=${STEPWELL_SEED:-20260222}
target=${CARGO_TARGET_DIR:-target}
if [ -z "${STEPWELL_BINARY:-}" ]; then
  cargo build --quiet -p stepwell
fi
binary=${STEPWELL_BINARY:-$target/debug/stepwell}

venv=$target/schemathesis
pinned=scripts/schemathesis-requirements.txt
if ! cmp -s "$pinned" "$venv/pinned"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$pinned"
  cp "$pinned" "$venv/pinned"
fi

place=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
  rm -rf "$place"
}
trap finish EXIT

env -u STEPWELL_CONFIG "$binary" serve --data "$place/data" --listen 127.0.0.1:0 >"$place/out" 2>"$place/log" &
server=$!
for _ in $(seq 300); do
  [ -s "$place/data/server.url" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$place/log" >&2; exit 1; }
  sleep 0.1
done
url=$(cat "$place/data/server.url")

# A separate organisation with one thing of each kind, so that no request can make the server or the key unusable.
"$venv/bin/python" - "$url" "$place" <<'PY'
import json, pathlib, sys, time, requests

url, place = sys.argv[1], pathlib.Path(sys.argv[2])
operator = (place / "data" / "admin.key").read_text().strip()


def call(key, path, body):
    answer = requests.post(url + "/api/v1" + path, json=body, headers={"Authorization": "Bearer " + key}, timeout=30)
    assert answer.status_code < 300, (path, answer.status_code, answer.text)
    return answer.json()["data"]


key = call(operator, "/organisations", {"name": "fuzzed"})["admin_key"]
call(key, "/workflows", {"name": "nap", "trigger": ["api", {"cron": "0 0 1 1 *"}], "tasks": {"rest": {"sleep": 0}}})
call(key, "/workflows", {"name": "gate", "tasks": {"ask": {"approval": {"message": "well?"}}}})
run = call(key, "/workflows/nap/trigger?wait=10s", {})["run_id"]
gate = call(key, "/workflows/gate/trigger?wait=1s", {})
call(key, "/users", {"name": "ann", "roles": []})
made = call(key, "/keys", {"user": "ann", "name": "spare"})
(place / "key").write_text(key)
(place / "operator").write_text(operator)
# Real ids: made-up ones lead to 404 only. And no long waits for the end of runs that another call has paused.
(place / "real.toml").write_text(f"""
[parameters]
"path.id" = "nap"
"path.run" = "{run}"
"path.user" = "ann"
"path.key" = "{made['id']}"
"path.version" = 1
"query.wait" = "100ms"
"header.Prefer" = "wait=0"
""")
(place / "plain.toml").write_text("")
PY

# Not called, by name:
#   events, stream, ws           answer without end; they have tests of their own
#   DELETE and PATCH of keys     could revoke or pause the key in use, and everything after would be 401
#   DELETE and PATCH of users    could disable its user
#   sign-out, sign-in            a key has no session; a link is used up by the first call
#   DELETE of the real workflow  everything after would be 404; made-up ones are deleted
checks=not_a_server_error,status_code_conformance,content_type_conformance
checks=$checks,response_headers_conformance,response_schema_conformance
checks=$checks,unsupported_method,allow_header_conformance,missing_required_header
run() {
  local name=$1 config=$2
  shift 2
  echo "── schemathesis: $name"
  (cd "$place" && "$tool" --config-file "$place/$config.toml" run "$url/openapi.json" \
    --seed "$seed" --generation-database none --checks "$checks" --suppress-health-check all --warnings off \
    --request-timeout 30 --no-color --continue-on-failure "$@") || failed="$failed, $name"
}
tool=$(cd "$venv/bin" && pwd)/st
failed=
exclude=(--exclude-path /api/v1/events --exclude-path '/api/v1/runs/{run}/stream' --exclude-path /api/v1/ws)
spare=(--exclude-path '/api/v1/keys/{key}' --exclude-path '/api/v1/users/{user}' --exclude-path /api/v1/sign-out)
spare+=(--exclude-path '/sign-in/{link}')
bearer="Authorization: Bearer $(cat "$place/key")"
operator="Authorization: Bearer $(cat "$place/operator")"

run "with a key" plain --phases "$phases" --max-examples "$examples" -H "$bearer" "${exclude[@]}" "${spare[@]}"
run "with a key, real ids" real --phases fuzzing --max-examples "$examples" -H "$bearer" "${exclude[@]}" "${spare[@]}" \
  --exclude-name 'DELETE /api/v1/workflows/{id}'
run "looking at users and keys" real --phases fuzzing --max-examples "$examples" -H "$bearer" \
  --include-path-regex '^/api/v1/(users|keys)' --exclude-method DELETE --exclude-method PATCH
run "organisations, as operator" plain --phases fuzzing --max-examples "$examples" -H "$operator" \
  --include-path-regex '^/api/v1/organisations$'
run "without a key" plain --phases coverage,fuzzing --max-examples "$examples" "${exclude[@]}"

if ! kill -0 "$server" 2>/dev/null; then
  echo "the server is gone:" >&2
  tail -50 "$place/log" >&2
  exit 1
fi
if grep -q panicked "$place/log"; then
  grep -A5 panicked "$place/log" >&2
  exit 1
fi
if [ -n "$failed" ]; then
  echo "schemathesis found something:${failed#,}" >&2
  exit 1
fi
