"""The official Python SDK as a client, over HTTP and standard input and output, of both generations of the protocol.

Starts servers of its own: one of them is killed in the middle of a wait.
"""

import asyncio
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

BINARY = sys.argv[1]
PATIENCE = 60

GATED = {
    "name": "gated",
    "description": "Sends a word once somebody has approved",
    "expose_as_tool": True,
    "input_schema": {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}},
    "tasks": {
        "ask": {"approval": {"message": "say {{input.word}}?"}},
        "say": {"needs": ["ask"], "tool": "echo", "args": {"value": "{{input.word}}"}},
    },
    "output": "{{tasks.say.body}}",
}


class Server:
    """The real binary on a directory that goes away."""

    def __init__(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.data = pathlib.Path(self.place.name) / "data"
        self.process = None
        self.start()

    def start(self) -> None:
        (self.data / "server.url").unlink(missing_ok=True)
        arguments = [BINARY, "serve", "--data", str(self.data), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        until = time.monotonic() + PATIENCE
        while not (self.data / "server.url").exists() or not (self.data / "server.url").read_text().strip():
            assert self.process.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(0.05)
        self.url = (self.data / "server.url").read_text().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0
        self.place.cleanup()

    def key(self, name: str) -> str:
        return (self.data / f"{name}.key").read_text().strip()

    def new_user(self, name: str, grants: list[str]) -> str:
        """A key of a new user."""
        headers = {"Authorization": "Bearer " + self.key("admin")}
        with httpx2.Client(base_url=self.url, headers=headers, trust_env=False) as admin:
            assert admin.post("/api/v1/users", json={"name": name, "grants": grants}).status_code == 201
            made = admin.post("/api/v1/keys", json={"user": name, "name": "test"})
        return made.json()["data"]["key"]

    def accept(self, workflow: str) -> None:
        """A person accepts what an agent wrote."""
        headers = {"Authorization": "Bearer " + self.key("admin")}
        with httpx2.Client(base_url=self.url, headers=headers, trust_env=False) as admin:
            review = admin.get(f"/api/v1/reviews/{workflow}")
            if review.status_code == 404:  # Accepted before, with the same text.
                return
            digest = review.json()["data"]["digest"]
            accepted = admin.post(f"/api/v1/reviews/{workflow}/accept", json={"digest": digest})
        assert accepted.status_code == 200, accepted.text

    @contextlib.asynccontextmanager
    async def http(self, key: str, **options: Any):
        timeout = httpx2.Timeout(PATIENCE)
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http:
            async with Client(streamable_http_client(self.url + "/mcp", http_client=http), **options) as client:
                yield client

    @contextlib.asynccontextmanager
    async def stdio(self, key: str, **options: Any):
        arguments = ["mcp", "--data", str(self.data), "--api-key", key]
        async with Client(StdioServerParameters(command=BINARY, args=arguments), **options) as client:
            yield client


async def done(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call gives that works. The SDK holds it against the tool's output schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.content[0].text
    return result.structured_content


async def eventually(look):
    until = time.monotonic() + PATIENCE
    while (found := await look()) is None:
        assert time.monotonic() < until, look
        await asyncio.sleep(0.1)
    return found


async def define_start_watch_and_approve_from_a_second_client(server: Server, connect, mode: str) -> None:
    approver = server.new_user(f"ann-{connect.__name__}-{mode}", ["workflow.read", "workflow.approve"])
    async with connect(server.key("agent"), mode=mode) as agent, connect(approver, mode=mode) as person:
        names = {tool.name for tool in (await agent.list_tools()).tools}
        assert "workflow_start" in names and "workflow_approve" not in names, names
        await done(agent, "workflow_define", {"definition": GATED})
        server.accept("gated")
        assert "gated" in {tool.name for tool in (await agent.list_tools()).tools}
        run = await done(agent, "gated", {"word": "hi"})
        assert run["status"] == "paused" and not run["approvals"][0]["mine"], run
        seen = await done(person, "workflow_status", {"run_id": run["run_id"]})
        gate = seen["approvals"][0]
        assert gate["mine"] and gate["asks"]["message"] == "say hi?", gate
        answer = {"run_id": run["run_id"], "step_name": gate["step"], "digest": gate["digest"], "comment": "fine"}
        refused = await agent.call_tool("workflow_approve", answer)
        assert refused.is_error and "workflow.approve" in refused.content[0].text
        await done(person, "workflow_approve", answer)
        end = await done(agent, "workflow_status", {"run_id": run["run_id"], "wait_seconds": 20})
        assert end["status"] == "completed" and "hi" in json.dumps(end["output"]), end
        events = await done(agent, "workflow_events", {"run_id": run["run_id"]})
        assert events["events"][-1]["type"] == "ended", events
        read = await agent.read_resource("stepwell://runs/" + run["run_id"])
        assert json.loads(read.contents[0].text)["status"] == "completed"
        prompt = await agent.get_prompt("define_workflow", {"goal": "greet people"})
        assert "greet people" in prompt.messages[0].content.text
        wrong = await agent.call_tool("workflow_define", {"definition": "name: x\ntasks: {a: {needs: [b], sleep: 1}}"})
        assert wrong.is_error and "tasks.a" in wrong.content[0].text, wrong
        await the_newer_tools(agent, run["run_id"])


async def the_newer_tools(agent, run: str) -> None:
    helped = await agent.call_tool("workflow_help", {"topic": "gates"})
    assert not helped.is_error and "approval" in helped.content[0].text, helped
    tools = await done(agent, "tools_list", {"query": "echo"})
    assert tools["tools"][0]["name"] == "echo" and tools["tools"][0]["allowed"], tools
    guess = {"name": "guess", "steps": [{"id": "a", "type": "tool", "tool": "echo", "arguments": {"value": 1}}]}
    refused = await agent.call_tool("workflow_define", {"definition": guess})
    assert refused.is_error and refused.structured_content["errors"][0]["fix"]["path"] == "", refused
    waited = await done(agent, "workflow_wait", {"run_id": run})
    assert waited["status"] == "completed", waited
    page = await done(agent, "step_result", {"run_id": run, "max_bytes": 1000})
    assert page["total"] == len(page["text"].encode()) and page["next"] is None, page
    again = await done(agent, "workflow_rerun", {"run_id": run, "wait_seconds": 0})
    assert again["run_id"] != run, again
    await done(agent, "workflow_cancel", {"run_id": again["run_id"]})
    diff = await done(agent, "workflow_diff", {"workflow": again["workflow"]})
    assert "changed" in diff, diff


async def a_client_that_listens_hears_of_new_tools_and_of_runs(server: Server, connect) -> None:
    async with connect(server.key("agent")) as agent, connect(server.key("agent")) as other:
        name = f"heard-{connect.__name__}"
        definition = {"name": name, "expose_as_tool": True, "tasks": {"nap": {"sleep": "1h"}}}
        async with agent.listen(tools_list_changed=True) as heard:
            await done(other, "workflow_define", {"definition": definition})
            server.accept(name)
            event = await asyncio.wait_for(anext(aiter(heard)), PATIENCE)
            assert "Tools" in type(event).__name__, event
        assert name in {tool.name for tool in (await agent.list_tools()).tools}
        run = await done(agent, "workflow_start", {"workflow": name, "wait_seconds": 0})
        async with agent.listen(resource_subscriptions=["stepwell://runs/" + run["run_id"]]) as heard:
            await done(other, "workflow_cancel", {"run_id": run["run_id"]})
            event = await asyncio.wait_for(anext(aiter(heard)), PATIENCE)
            assert run["run_id"] in str(event), event


async def killed_in_the_middle_of_a_wait_a_run_finishes_after_the_restart(server: Server) -> None:
    tasks = {"rest": {"sleep": "4s"}, "ask": {"needs": ["rest"], "approval": {"message": "?"}}}
    definition = {"name": "slow", "tasks": tasks}
    approver = server.new_user("eve", ["workflow.run", "workflow.read", "workflow.approve", "workflow.define"])
    run, lost = None, False
    try:
        async with server.http(approver) as agent:
            await done(agent, "workflow_define", {"definition": definition})
            run = await done(agent, "workflow_start", {"workflow": "slow", "wait_seconds": 0})
            status = {"run_id": run["run_id"], "wait_seconds": 20}
            waiting = asyncio.create_task(agent.call_tool("workflow_status", status))
            # The run itself takes longer than this, however long a client waits.
            await asyncio.sleep(0.5)
            server.kill()
            await waiting
    except (MCPError, ExceptionGroup):
        # How a lost server is told is the client's business.
        lost = True
    assert run and lost, "the server was killed"
    server.start()
    async with server.stdio(approver) as agent:
        seen = await done(agent, "workflow_status", {"run_id": run["run_id"], "wait_seconds": 20})
        assert seen["status"] == "paused", seen
        gate = seen["approvals"][0]
        await done(agent, "workflow_approve", {"step_id": gate["id"], "digest": gate["digest"]})
        seen = await done(agent, "workflow_status", {"run_id": run["run_id"], "wait_seconds": 20})
        assert seen["status"] == "completed", seen


async def an_older_client_over_stdio_is_asked_in_the_middle_of_its_call(server: Server) -> None:
    key = server.new_user("max", ["workflow.run", "workflow.read", "workflow.approve", "workflow.define", "tool:*"])
    asked = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "approve", "comment": "from the client"})

    async with server.stdio(key, mode="legacy", elicitation_callback=answer) as agent:
        await done(agent, "workflow_define", {"definition": GATED})
        run = await done(agent, "gated", {"word": "asked"})
        assert run["status"] == "completed" and "asked" in json.dumps(run["output"]), run
        assert len(asked) == 1 and "say asked?" in asked[0], asked


async def the_branching_and_gated_flows_of_the_first_design_run_as_written(server: Server) -> None:
    key = server.new_user("james", ["workflow.run", "workflow.read", "workflow.approve", "workflow.define", "tool:*"])
    research = {
        "start": {"name": "search", "tool": "echo", "args": {"value": "{{input.topic}}"}, "next": "summarize"},
        "summarize": {"name": "summarize", "tool": "echo", "args": {"value": "{{input.doc_id}}"}, "next": "notify"},
        "notify": {"name": "notify", "tool": "echo", "args": {"value": "Research complete"}, "done": True},
    }
    gate = {
        "start": {"name": "request_approval", "tool": None, "args": {}, "next": "execute_write"},
        "execute_write": {"name": "execute_write", "tool": "echo",
                          "args": {"value": "{{input.title}}"}, "done": True},
    }
    async with server.http(key) as agent:
        await done(agent, "workflow_define", {"definition": {"name": "research", "flow": research}})
        start = {"workflow": "research", "input": {"topic": "AI safety", "doc_id": 7}, "wait_seconds": 20}
        run = await done(agent, "workflow_start", start)
        assert run["status"] == "completed" and "Research complete" in json.dumps(run["output"]), run
        await done(agent, "workflow_define", {"definition": {"name": "write", "flow": gate}})
        run = await done(agent, "workflow_start", {"workflow": "write", "input": {"title": "t"}, "wait_seconds": 20})
        assert run["status"] == "paused", run
        step = run["approvals"][0]["step"]
        await done(agent, "workflow_approve", {"run_id": run["run_id"], "step_name": step})
        seen = await done(agent, "workflow_status", {"run_id": run["run_id"], "wait_seconds": 20})
        assert seen["status"] == "completed", seen
        run = await done(agent, "workflow_start", {"workflow": "write", "input": {}, "wait_seconds": 20})
        await done(agent, "workflow_deny", {"run_id": run["run_id"], "step_name": step})
        seen = await done(agent, "workflow_status", {"run_id": run["run_id"], "wait_seconds": 20})
        assert seen["status"] == "cancelled", seen
        listed = await done(agent, "workflow_list_runs", {"status": ["cancelled"], "workflow": "write"})
        assert [one["id"] for one in listed["runs"]] == [run["run_id"]], listed


async def main() -> None:
    server = Server()
    try:
        for connect in (server.http, server.stdio):
            for mode in ("auto", "legacy"):
                await define_start_watch_and_approve_from_a_second_client(server, connect, mode)
                print(f"ok: define, start, watch, approve from a second client ({connect.__name__}, {mode})")
            await a_client_that_listens_hears_of_new_tools_and_of_runs(server, connect)
            print(f"ok: notices of new tools and of runs ({connect.__name__})")
        await an_older_client_over_stdio_is_asked_in_the_middle_of_its_call(server)
        print("ok: an older client is asked in the middle of its call (stdio)")
        await the_branching_and_gated_flows_of_the_first_design_run_as_written(server)
        print("ok: flows with gates")
        await killed_in_the_middle_of_a_wait_a_run_finishes_after_the_restart(server)
        print("ok: killed in the middle of a wait")
    finally:
        server.stop()


asyncio.run(main())
