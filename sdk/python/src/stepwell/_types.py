"""What methods take and return, beside the types that are made from the description of the API."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._schema import Approval as Approval
from ._schema import EndEvent as EndEvent
from ._schema import Event as Event
from ._schema import Run as Run
from ._schema import RunStatus as RunStatus
from ._schema import RunSummary as RunSummary
from ._schema import Schedule as Schedule
from ._schema import Secret as Secret
from ._schema import Started as Started
from ._schema import Step as Step
from ._schema import StepError as StepError
from ._schema import StepStatus as StepStatus
from ._schema import Waiting as Waiting
from ._schema import Workflow as Workflow
from ._schema import WorkflowSummary as WorkflowSummary

#: The statuses of a run that has ended. It can still be retried.
ENDED: frozenset[str] = frozenset({"completed", "failed", "cancelled", "timeout"})

Json = Any
T = TypeVar("T")


class Page(Generic[T]):
    """One page of a list."""

    def __init__(self, items: list[T], next: str | None) -> None:
        self.items = items
        self.next = next
