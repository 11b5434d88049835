//! Tells a server that what a suspended call left there is no longer awaited: an open question is declined or
//! cancelled, a task is cancelled.

use super::Upstreams;
use super::call::{RequestError, Sender};
use super::deferred::Note;
use super::upstream::{Link, Upstream};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelTaskParams, CancelTaskRequest, ClientRequest, UpdateTaskParams,
    UpdateTaskRequest,
};
use serde_json::Value;
use stepwell_core::plan::Abandon;
use stepwell_engine::StepCall;
use stepwell_engine::upstream::Standing;

impl Upstreams {
    /// The error says why the server could not be told now.
    pub(crate) async fn abandon(&self, args: &Value, call: &StepCall, reason: Abandon) -> Result<(), String> {
        // A call that only waited for its server has left nothing there.
        let Some(note) = call.resumed.as_ref().and_then(|resumed| Note::read(&resumed.note)) else { return Ok(()) };
        let Some(upstream) = self.named(call.caller.org, &note.server) else { return Ok(()) };
        let link = upstream.link().await?;
        let sender = Sender { upstream, call };
        if let Some(request) = refusal(&note, args, reason, upstream) {
            told(&sender, &link, request).await?;
        }
        match note.task {
            Some(task) => {
                let request = CancelTaskRequest::new(CancelTaskParams::new(task));
                told(&sender, &link, ClientRequest::CancelTaskRequest(request)).await
            }
            None => Ok(()),
        }
    }
}

/// The request that refuses to answer the open question, if there is one.
fn refusal(note: &Note, args: &Value, reason: Abandon, upstream: &Upstream) -> Option<ClientRequest> {
    let responses = note.refusal(match reason {
        Abandon::Denied => "decline",
        Abandon::Over => "cancel",
    })?;
    if let Some(task) = &note.task {
        let params = UpdateTaskParams::new(task.clone(), responses);
        return Some(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params)));
    }
    // The refusal repeats the call. A tool that was changed since is not called before it was reviewed.
    let known = upstream.known(&upstream.full_name(&note.tool))?;
    if upstream.standing(&known.offered) != Standing::Accepted {
        return None;
    }
    let mut params = CallToolRequestParams::new(note.tool.clone());
    params.arguments = args.as_object().cloned();
    params.input_responses = Some(responses);
    params.request_state = note.state.clone();
    Some(ClientRequest::CallToolRequest(CallToolRequest::new(params)))
}

/// Sends a request whose result is not needed. A refusal is as good: the server knows.
async fn told(sender: &Sender<'_>, link: &Link, request: ClientRequest) -> Result<(), String> {
    match sender.send(link, request).await.0 {
        Err(RequestError::Unsent(why) | RequestError::Lost(why)) => Err(why),
        Ok(_) | Err(_) => Ok(()),
    }
}
