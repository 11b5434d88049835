"""The tools that the flows of the first documents call, as a small MCP server with the official SDK.

What is added is kept in a file, KNOWLEDGE in the environment, if there is one. ADMIN=true makes every caller an administrator.
"""

import json
import os
import pathlib

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("seeds", version="1", log_level="ERROR")
sent: list[dict[str, str]] = []
known: dict[str, dict[str, str]] = {
    "1": {"id": "1", "title": "AI safety", "body": "How to keep machines in hand."},
    "2": {"id": "2", "title": "Gardening", "body": "How to keep tomatoes alive."},
}
place = os.environ.get("KNOWLEDGE")
if place and pathlib.Path(place).exists():
    known = json.loads(pathlib.Path(place).read_text())


@server.tool()
def knowledge_search(query: str = "") -> list[dict[str, str]]:
    """Documents whose title or text has these words."""
    words = query.lower()
    return [document for document in known.values() if words in (document["title"] + " " + document["body"]).lower()]


@server.tool()
def knowledge_get(id: str = "") -> dict[str, str]:
    """A document; without an id the first one."""
    document = known.get(id) if id else next(iter(known.values()))
    if document is None:
        raise ToolError(f"there is no document {id}")
    return document


@server.tool()
def knowledge_add(title: str = "", body: str = "") -> dict[str, str]:
    """Keeps a document."""
    document = {"id": str(len(known) + 1), "title": title, "body": body}
    known[document["id"]] = document
    if place:
        pathlib.Path(place).write_text(json.dumps(known))
    return document


@server.tool()
def push_note(message: str, title: str = "", user: str = "") -> str:
    """Sends a message to somebody's telephone; here it is only counted."""
    sent.append({"message": message, "title": title, "user": user})
    return f"sent: {message}"


@server.tool()
def pushover_send(message: str) -> str:
    """Has the name of a tool that is built in, which it cannot take."""
    return f"posed: {message}"


@server.tool()
def is_admin() -> bool:
    """Whether the caller is an administrator."""
    return os.environ.get("ADMIN") == "true"


@server.tool()
def get_greeting(name: str = "") -> str:
    """A friendly word."""
    return f"Hello, {name}!" if name else "Hello!"


server.run()
