//! Stands between a transport and the SDK, which would queue without limit: replies to the server's own requests,
//! and a task for each notification.
//!
//! The server's requests are answered here, a bounded number at a time. Progress goes straight to its call; other
//! notifications that nothing listens to are dropped.

use super::limits::{MAX_ID, MAX_REPLIES, MAX_STALL, Verdict};
use super::message::{UNREADABLE, unreadable};
use super::progress::ProgressTracker;
use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    ClientResult, ErrorCode, ErrorData, GetMeta, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage,
    ServerNotification, ServerRequest, ToolListChangedNotification,
};
use rmcp::transport::Transport;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub struct Guard<T> {
    inner: T,
    server: String,
    verdict: Arc<Verdict>,
    progress: Arc<ProgressTracker>,
    /// Requests without a response so far, with the token of those whose progress is recorded.
    pending: HashMap<RequestId, Option<ProgressToken>>,
    /// The subscription that the server has not acknowledged yet.
    subscribing: Option<RequestId>,
    /// Requests whose lost response has not been reported yet.
    lost: Vec<(RequestId, String)>,
    replies: Arc<Semaphore>,
}

impl<T: Transport<RoleClient>> Guard<T> {
    pub fn new(inner: T, server: &str, verdict: Arc<Verdict>, progress: Arc<ProgressTracker>) -> Guard<T> {
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        let (pending, subscribing, lost) = (HashMap::new(), None, Vec::new());
        Guard { inner, server: server.to_owned(), verdict, progress, pending, subscribing, lost, replies }
    }

    fn sending(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let is_call = matches!(
                    request.request,
                    ClientRequest::CallToolRequest(_)
                        | ClientRequest::GetTaskRequest(_)
                        | ClientRequest::UpdateTaskRequest(_)
                );
                let token = request.request.get_meta().get_progress_token().filter(|_| is_call);
                // Before the request is sent, so that no progress comes too early.
                token.iter().for_each(|token| self.progress.expect(token));
                if matches!(request.request, ClientRequest::SubscriptionsListenRequest(_)) {
                    self.subscribing = Some(request.id.clone());
                }
                self.pending.insert(request.id.clone(), token);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && let Some(Some(token)) = self.pending.remove(id)
                {
                    self.progress.forget(&token);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// The message for the SDK, if there is one.
    fn received(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Request(request) => {
                self.reply(request.id, &request.request);
                None
            }
            JsonRpcMessage::Notification(notification) => {
                let kept = self.notified(notification.notification)?;
                Some(ServerJsonRpcMessage::notification(kept))
            }
            JsonRpcMessage::Response(response) => {
                self.pending.remove(&response.id);
                Some(JsonRpcMessage::Response(response))
            }
            JsonRpcMessage::Error(error) if error.error.code == UNREADABLE => self.lose(error.id, &error.error.message),
            JsonRpcMessage::Error(error) => {
                error.id.as_ref().map(|id| self.pending.remove(id));
                Some(JsonRpcMessage::Error(error))
            }
        }
    }

    /// An unreadable response fails its call, or all pending calls if it cannot be told whose it is.
    fn lose(&mut self, id: Option<RequestId>, why: &str) -> Option<ServerJsonRpcMessage> {
        let known = id.filter(|id| self.pending.contains_key(id));
        let lost: Vec<RequestId> = match known {
            Some(id) => vec![id],
            None => self.pending.keys().cloned().collect(),
        };
        tracing::warn!(server = self.server, why, calls = lost.len(), "an MCP server sent an unreadable message");
        self.lost.extend(lost.into_iter().map(|id| (id, why.to_owned())));
        self.next_lost()
    }

    fn next_lost(&mut self) -> Option<ServerJsonRpcMessage> {
        let (id, why) = self.lost.pop()?;
        self.pending.remove(&id);
        Some(unreadable(Some(id), &why))
    }

    fn notified(&mut self, notification: ServerNotification) -> Option<ServerNotification> {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                self.progress.record(progress.params);
                None
            }
            changed @ ServerNotification::ToolListChangedNotification(_) => {
                let Some(id) = changed.get_meta().subscription_id().filter(|id| self.pending.contains_key(id)) else {
                    self.progress.changed.notify_one();
                    return None;
                };
                // Only what the SDK needs, so that its queue stays small.
                let bare = ToolListChangedNotification::default();
                let mut bare = ServerNotification::ToolListChangedNotification(bare);
                bare.get_meta_mut().set_subscription_id(id);
                Some(bare)
            }
            ServerNotification::CancelledNotification(cancelled) => {
                let id = cancelled.params.request_id.filter(|id| self.pending.contains_key(id))?;
                let params = CancelledNotificationParam::new(Some(id), None);
                Some(ServerNotification::CancelledNotification(CancelledNotification::new(params)))
            }
            acknowledged @ ServerNotification::SubscriptionsAcknowledgedNotification(_) => {
                self.subscribing.take().map(|_| acknowledged)
            }
            _ => None,
        }
    }

    /// Stepwell offers servers nothing but an answer to `ping`.
    fn reply(&mut self, id: RequestId, request: &ServerRequest) {
        if matches!(&id, RequestId::String(text) if text.len() > MAX_ID) {
            return self.verdict.end(format!("it sent a request with an id of more than {MAX_ID} bytes"));
        }
        let Ok(permit) = self.replies.clone().try_acquire_owned() else {
            return self.verdict.end(format!("it sent more than {MAX_REPLIES} requests without reading the replies"));
        };
        let reply = match request {
            ServerRequest::PingRequest(_) => ClientJsonRpcMessage::response(ClientResult::empty(()), id),
            _ => {
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not supported by this client", None);
                ClientJsonRpcMessage::error(error, Some(id))
            }
        };
        let (sent, verdict) = (self.inner.send(reply), self.verdict.clone());
        tokio::spawn(async move {
            let _permit = permit;
            tokio::select! {
                _ = sent => {}
                _ = verdict.ended() => {}
                () = tokio::time::sleep(MAX_STALL) => {
                    verdict.end(format!("it has not read a reply for {} s", MAX_STALL.as_secs()));
                }
            }
        });
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guard<T> {
    type Error = T::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.sending(&message);
        self.inner.send(message)
    }

    /// May be dropped at any time: it waits for nothing but the transport.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(lost) = self.next_lost() {
                return Some(lost);
            }
            if self.verdict.why().is_some() {
                return None;
            }
            let verdict = self.verdict.clone();
            let message = tokio::select! {
                message = self.inner.receive() => message?,
                _ = verdict.ended() => return None,
            };
            if let Some(message) = self.received(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
