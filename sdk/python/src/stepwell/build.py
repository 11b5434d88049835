"""Workflows in code: steps as values, references to their results as templates.

    from stepwell.build import Workflow

    order = Workflow("order")
    charge = order.http("charge", "https://pay.example/charges", body={"order": order.input.order_id}, retries=3)
    ask = order.approval("ask", message=f"Ship {charge.body.id}?", timeout="2d")
    order.tool("ship", "ship_order", {"payment": charge.body.id}, needs=[ask])
    order.output = {"payment": charge.body.id}
    print(order.to_yaml())

What a step reads, it needs: ``needs`` is for steps whose results it does not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._problem import StepwellError
from ._types import Json

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_READ = re.compile(r"\btasks(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\[\"((?:[^\"\\]|\\.)*)\"\])")


class BuildError(StepwellError):
    """A step reads or needs one that is not there, or two have the same name."""


class Condition:
    """An expression that is true or false. Combine conditions with ``&``, ``|`` and ``~``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self}) && ({other})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self}) || ({other})")

    def __invert__(self) -> Condition:
        return Condition(f"!({self})")

    def __bool__(self) -> bool:
        # `a and b` would silently drop one of them.
        raise BuildError("combine conditions with & and |, not with `and` and `or`")


class Ref:
    """A value that is known when the workflow runs: ``charge.body.id`` becomes ``{{tasks.charge.body.id}}``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Ref:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, key: str | int) -> Ref:
        if isinstance(key, int):
            return Ref(f"{self._text}[{key}]")
        return Ref(f"{self._text}.{key}" if _PLAIN.match(key) else f"{self._text}[{json.dumps(key)}]")

    def __iter__(self) -> Iterator[Ref]:
        raise BuildError("a list is known only when the workflow runs: use for_each")

    def __bool__(self) -> bool:
        raise BuildError("a value is known only when the workflow runs: compare it in `if_`")

    def default(self, value: Json) -> Ref:
        """The value, or another if it is missing or null."""
        return Ref(f"{self._text} ?? {_literal(value)}")

    def __str__(self) -> str:
        return "{{" + self._text + "}}"

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compare(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def _compare(self, operator: str, other: object) -> Condition:
        left = f"({self._text})" if "??" in self._text else self._text
        return Condition(f"{left} {operator} {other._text if isinstance(other, Ref) else _literal(other)}")


class Step(Ref):
    """A step, and its result: ``step.body``, ``step.status``, ``step.status_code``, ``step.error``."""

    def __init__(self, name: str) -> None:
        super().__init__(Ref("tasks")[name]._text)
        self._name = name


class Steps:
    """A map of steps: those of a workflow, or of the body of a ``for_each``."""

    #: The input of the run.
    input = Ref("input")
    #: What started the run.
    trigger = Ref("trigger")
    #: In the body of a ``for_each``: the item and its position.
    item = Ref("item")
    index = Ref("index")

    def __init__(self) -> None:
        self._steps: dict[str, dict[str, Json]] = {}

    def step(
        self,
        name: str,
        *,
        needs: Iterable[Step | str] = (),
        if_: Condition | str | None = None,
        **fields: Json,
    ) -> Step:
        """A step of any kind, with the fields of docs/definitions.md."""
        if name in self._steps:
            raise BuildError(f"two steps are named {name!r}")
        written: dict[str, Json] = {"needs": [need._name if isinstance(need, Step) else need for need in needs]}
        if if_ is not None:
            written["if"] = str(if_)
        written.update((key, _plain(value)) for key, value in fields.items() if value is not None)
        self._steps[name] = written
        return Step(name)

    def http(self, name: str, url: str | Ref, *, method: str | None = None, **fields: Json) -> Step:
        return self.step(name, url=url, method=method, **fields)

    def tool(self, name: str, tool: str, args: Mapping[str, Json] | None = None, **fields: Json) -> Step:
        return self.step(name, tool=tool, args=None if args is None else dict(args), **fields)

    def javascript(self, name: str, code: str, **fields: Json) -> Step:
        return self.step(name, javascript=code, **fields)

    def query(self, name: str, connection: str, sql: str, params: Json = None, **fields: Json) -> Step:
        query = {"connection": connection, "sql": sql, "params": params}
        return self.step(name, query={key: value for key, value in query.items() if value is not None}, **fields)

    def sleep(self, name: str, length: str | float | Ref, **fields: Json) -> Step:
        return self.step(name, sleep=length, **fields)

    def wait_for_webhook(self, name: str, *, timeout: str | None = None, **fields: Json) -> Step:
        return self.step(name, wait_for_webhook=True if timeout is None else {"timeout": timeout}, **fields)

    def approval(
        self,
        name: str,
        *,
        needs: Iterable[Step | str] = (),
        if_: Condition | str | None = None,
        **fields: Json,
    ) -> Step:
        """A gate; its fields are those of an approval, such as ``message``, ``approvers`` and ``timeout``."""
        given = {key: value for key, value in fields.items() if value is not None}
        return self.step(name, needs=needs, if_=if_, approval=given or True)

    def workflow(self, name: str, workflow: str, input: Json = None, **fields: Json) -> Step:
        """Starts another workflow and waits for its end."""
        return self.step(name, workflow=workflow, input=input, **fields)

    def for_each(
        self, name: str, items: Ref | Sequence[Json], body: Callable[[Steps], object], **fields: Json
    ) -> Step:
        """Runs the steps that ``body`` adds for each item."""
        inner = Steps()
        body(inner)
        return self.step(name, for_each=items, tasks=inner, **fields)

    def __getitem__(self, name: str) -> Step:
        """A step by its name."""
        if name not in self._steps:
            raise BuildError(f"there is no step {name!r}")
        return Step(name)

    def _load(self, tasks: Mapping[str, Json]) -> None:
        for name, task in tasks.items():
            fields = dict(task)
            needs, body = fields.pop("needs", None) or [], fields.pop("tasks", None)
            if body is not None:
                fields["tasks"] = Steps()
                fields["tasks"]._load(body)
            self._steps[name] = {"needs": [needs] if isinstance(needs, str) else list(needs), **fields}

    def _written(self, around: frozenset[str] = frozenset()) -> dict[str, Json]:
        known = frozenset(self._steps)
        tasks = {}
        for name, step in self._steps.items():
            fields = dict(step)
            body = fields.get("tasks")
            if isinstance(body, Steps):
                fields["tasks"] = body._written(around | known)
            inner = frozenset(body._steps) if isinstance(body, Steps) else frozenset()
            needs = list(dict.fromkeys([*fields.pop("needs"), *(read for read in _read(fields) if read not in inner)]))
            for need in needs:
                if need not in known | around:
                    raise BuildError(f"step {name!r} reads {need!r}, but there is no such step")
            needs = [need for need in needs if need in known]
            tasks[name] = {**({"needs": needs} if needs else {}), **fields}
        return tasks


class Workflow(Steps):
    """A workflow in the tasks dialect. ``fields`` are the common fields of docs/definitions.md."""

    def __init__(self, name: str, **fields: Json) -> None:
        super().__init__()
        self.name = name
        #: The result of the run.
        self.output: Json = fields.pop("output", None)
        self._fields = fields

    @classmethod
    def load(cls, definition: Mapping[str, Json]) -> Workflow:
        """A definition in the tasks dialect: ``Client.workflow(name)["definition"]``, or what a parser of YAML returned.

        ``workflow["charge"]`` is a step of it.
        """
        fields = dict(definition)
        if "name" not in fields or not isinstance(fields.get("tasks"), Mapping):
            raise BuildError("this is not a definition in the tasks dialect")
        name, tasks = fields.pop("name"), fields.pop("tasks")
        workflow = cls(name, **fields)
        workflow._load(tasks)
        return workflow

    def to_dict(self) -> dict[str, Json]:
        """The definition, for ``Client.define`` and ``simulate``."""
        definition: dict[str, Json] = {"name": self.name}
        definition.update((key, _plain(value)) for key, value in self._fields.items() if value is not None)
        definition["tasks"] = self._written()
        if self.output is not None:
            definition["output"] = _plain(self.output)
            for read in _read(definition["output"]):
                if read not in self._steps:
                    raise BuildError(f"the output reads {read!r}, but there is no such step")
        return definition

    def to_yaml(self) -> str:
        """The definition as YAML."""
        return "".join(_yaml(self.to_dict(), ""))


def _plain(value: Any) -> Json:
    """References and conditions as text, in any value."""
    if isinstance(value, (Ref, Condition)):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def _literal(value: object) -> str:
    if isinstance(value, Ref):
        return value._text
    return json.dumps(value, ensure_ascii=False)


def _read(value: Json) -> list[str]:
    """The steps that expressions in a value read."""
    if isinstance(value, Mapping):
        return [name for key, inner in value.items() for name in (_names(inner) if key == "if" else _read(inner))]
    if isinstance(value, list):
        return [name for inner in value for name in _read(inner)]
    if isinstance(value, str):
        return [name for template in re.findall(r"\{\{(.*?)\}\}", value, re.DOTALL) for name in _names(template)]
    return []


def _names(expression: Json) -> list[str]:
    found = _READ.findall(expression) if isinstance(expression, str) else []
    return [plain or json.loads(f'"{quoted}"') for plain, quoted in found]


def _yaml(value: Json, indent: str) -> Iterator[str]:
    """Block style; keys and texts in quotes where YAML would read something else."""
    for key, inner in value.items():
        name = key if _PLAIN.match(key) and key.lower() not in _WORDS else json.dumps(key, ensure_ascii=False)
        if isinstance(inner, Mapping) and inner:
            yield f"{indent}{name}:\n"
            yield from _yaml(inner, indent + "  ")
        else:
            yield f"{indent}{name}: {_flow(inner)}\n"


_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_BARE = re.compile(r"[A-Za-z/][A-Za-z0-9_/. -]*[A-Za-z0-9_/]\Z")


def _flow(value: Json) -> str:
    """One line of YAML; JSON is part of it."""
    if isinstance(value, str) and _BARE.match(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
