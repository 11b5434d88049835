#!/usr/bin/env python3
"""Measures what an agent with the default key loads, and compares it with the table in docs/mcp.md.

Tokens are bytes of JSON divided by 3.5: the tokenisers of models in use need fewer for English and JSON. Fails if the
list of tools has 4,000 tokens or more, a topic of `workflow_help` 2,000, or if the table differs from what was found.

Usage: sizes.py URL DATA [--update]
"""

import json
import pathlib
import sys
import urllib.request

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "mcp.md"
BEGIN, END = "<!-- sizes -->\n", "<!-- /sizes -->"
BYTES_PER_TOKEN = 3.5
MOST_FOR_TOOLS, MOST_FOR_TOPIC = 4_000, 2_000
REVISION = "2026-07-28"
OWN = ("workflow_", "step_result", "tools_list")
# Bytes of the output of the run that the last rows are about.
OUTPUT = 250_000
# Answers have ids and times in them, so their sizes differ a little.
ROUNDED = 100

URL, DATA = sys.argv[1], pathlib.Path(sys.argv[2])
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request(path, key, body=None, **headers):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
    data = None if body is None else json.dumps(body).encode()
    with DIRECT.open(urllib.request.Request(URL + path, data, headers), timeout=60) as answer:
        return answer.read()


def ask(method, **params):
    """The result of a request over MCP, with the default key."""
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION, "MCP-Method": method}
    if "name" in params:
        headers["MCP-Name"] = params["name"]
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = json.loads(request("/mcp", (DATA / "agent.key").read_text().strip(), body, **headers))
    assert "result" in answer, answer
    return answer["result"]


def call(tool, **arguments):
    result = ask("tools/call", name=tool, arguments=arguments)
    assert not result.get("isError"), result
    return result


def tokens(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return round(len(text.encode()) / BYTES_PER_TOKEN)


def measured():
    # Not those that are workflows.
    tools = [tool for tool in ask("tools/list")["tools"] if tool["name"].startswith(OWN)]
    listed = tokens(tools)
    assert listed < MOST_FOR_TOOLS, f"the list of tools has {listed} tokens"
    yield f"the list of {len(tools)} tools", None, listed
    helps = next(tool for tool in tools if tool["name"] == "workflow_help")
    for topic in helps["inputSchema"]["properties"]["topic"]["enum"]:
        text = call("workflow_help", topic=topic)["content"][0]["text"]
        assert tokens(text) < MOST_FOR_TOPIC, f"{topic} has {tokens(text)} tokens"
        yield f"`workflow_help`, topic `{topic}`", None, tokens(text)
    admin = (DATA / "admin.key").read_text().strip()
    definition = {"name": "sizes", "tasks": {"say": {"tool": "echo", "args": {"value": "{{input.text}}"}}},
                  "output": "{{tasks.say.body}}"}
    request("/api/v1/workflows", admin, definition)
    started = call("workflow_start", workflow="sizes", input={"text": "x" * OUTPUT}, wait_seconds=20)
    run = started["structuredContent"]["run_id"]
    assert started["structuredContent"]["status"] == "completed", started
    # What the answers would have if nothing was cut: the content as text and as an object.
    whole = json.loads(request(f"/api/v1/runs/{run}", admin))["data"]
    for tool in ["workflow_start", "workflow_status", "workflow_events"]:
        answer = started if tool == "workflow_start" else call(tool, run_id=run)
        if tool == "workflow_start":
            full = 2 * tokens(whole["output"])
        else:
            full = 2 * tokens(whole) if tool == "workflow_status" else None
        shown = [part for part in (answer["content"], answer.get("structuredContent")) if part]
        yield f"`{tool}` of a run with {OUTPUT // 1000} KB of output", full, sum(tokens(part) for part in shown)


def table():
    lines = ["| an agent with the default key loads | tokens, if nothing was cut | tokens |", "| --- | --- | --- |"]
    for what, full, now in measured():
        print(f"{what}: about {now} tokens")
        exact = what.startswith("the list") or "workflow_help" in what
        now = now if exact else round(now / ROUNDED) * ROUNDED
        before = "" if full is None else f"{round(full / 1000) * 1000:,}"
        lines.append(f"| {what} | {before} | {now:,} |")
    return "\n".join(lines) + "\n"


def main():
    before, rest = PAGE.read_text().split(BEGIN)
    written, after = rest.split(END)
    found = table()
    if "--update" in sys.argv:
        PAGE.write_text(before + BEGIN + found + END + after)
    elif written != found:
        sys.exit(f"docs/mcp.md has other sizes; run scripts/mcp/sizes.py with --update\n{found}")


main()
