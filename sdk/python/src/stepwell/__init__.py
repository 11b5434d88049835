"""Client of Stepwell, a durable workflow engine.

    from stepwell import Client

    with Client() as stepwell:
        run = stepwell.run("hello", {"name": "Ann"})
        print(run["status"], run["output"])

The server and the key come from ``STEPWELL_URL`` and ``STEPWELL_KEY``, else from the data directory of a server on this
machine. ``AsyncClient`` has the same methods as coroutines.
"""

from ._async import AsyncClient
from ._config import Config
from ._problem import ConnectionFailed, Fault, Problem, StepwellError
from ._sync import Client
from ._types import Approval, EndEvent, Event, Page, Run, RunStatus, RunSummary, Schedule, Secret, Started, Step
from ._types import StepError, StepStatus, Waiting, Workflow, WorkflowSummary
from .webhooks import InvalidSignature, answer_wait, answer_wait_async, sign, verify

__all__ = [
    "Approval",
    "AsyncClient",
    "Client",
    "Config",
    "ConnectionFailed",
    "EndEvent",
    "Event",
    "Fault",
    "InvalidSignature",
    "Page",
    "Problem",
    "Run",
    "RunStatus",
    "RunSummary",
    "Schedule",
    "Secret",
    "Started",
    "Step",
    "StepError",
    "StepStatus",
    "StepwellError",
    "Waiting",
    "Workflow",
    "WorkflowSummary",
    "answer_wait",
    "answer_wait_async",
    "sign",
    "verify",
]
