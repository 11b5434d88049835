"""Uses the generated client as a caller would. It is only checked for types, never run."""

from datetime import datetime

from stepwell_client import AuthenticatedClient
from stepwell_client.api.approvals import approve_step, list_approvals
from stepwell_client.api.runs import get_run, list_run_events, list_runs, trigger_workflow
from stepwell_client.api.workflows import put_workflow
from stepwell_client.models import (
    AnswerRequest,
    DataRun,
    DataTriggered,
    FinishedEvent,
    Problem,
    ProblemCode,
    RunStatus,
    StepStatus,
)
from stepwell_client.types import UNSET, File


def define(client: AuthenticatedClient, text: bytes) -> None:
    from io import BytesIO

    answer = put_workflow.sync("hello", client=client, body=File(payload=BytesIO(text)))
    if isinstance(answer, Problem) and answer.code is ProblemCode.INVALID_DEFINITION:
        for fault in answer.errors or []:
            print(fault.pointer, fault.message)


def start(client: AuthenticatedClient) -> str:
    answer = trigger_workflow.sync("hello", client=client, body={"name": "Ann"}, idempotency_key="order-1")
    assert isinstance(answer, (DataRun, DataTriggered))
    return answer.data.run_id


def failed_steps(client: AuthenticatedClient, run_id: str) -> list[str]:
    answer = get_run.sync(run_id, client=client)
    if not isinstance(answer, DataRun) or answer.data.status is not RunStatus.FAILED:
        return []
    steps = answer.data.tasks.additional_properties
    return [path for path, step in steps.items() if step.status is StepStatus.FAILED]


def ended(client: AuthenticatedClient, run_id: str) -> list[datetime]:
    page = list_run_events.sync(run_id, client=client)
    if page is None or isinstance(page, Problem):
        return []
    return [event.at for event in page.data if isinstance(event, FinishedEvent)]


def approve_all(client: AuthenticatedClient) -> None:
    page = list_approvals.sync(client=client)
    if page is None or isinstance(page, Problem):
        return
    for approval in page.data:
        question = approval.asks.message
        print("" if question is UNSET else question)
        answer = AnswerRequest(comment="go ahead", digest=approval.digest)
        approve_step.sync(approval.run_id, approval.step, client=client, body=answer)


def all_runs(client: AuthenticatedClient) -> list[str]:
    page = list_runs.sync(client=client, status="failed")
    return [] if page is None or isinstance(page, Problem) else [run.run_id for run in page.data]
