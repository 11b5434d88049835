//! Reviews of what agents' keys wrote.

use super::{Backend, Directory, or_refusal};
use crate::client::Call;
use serde_json::json;
use stepwell_server::view::*;

impl Backend {
    pub async fn reviews(&self, all: bool) -> anyhow::Result<Vec<ReviewSummary>> {
        match self {
            Backend::Server(client) => {
                let call = Call::get(&["reviews"]).query("all", all.then_some("true"));
                Ok(client.body::<Page<ReviewSummary>>(call).await?.data)
            }
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.reviews(caller).list(all).await)?.into_iter().map(Into::into).collect())
            }
        }
    }

    pub async fn review(&self, review: &str) -> anyhow::Result<ReviewDetail> {
        match self {
            Backend::Server(client) => client.data(Call::get(&["reviews", review])).await,
            Backend::Directory(Directory { engine, caller }) => {
                Ok(or_refusal(engine.reviews(caller).get(review).await)?.into())
            }
        }
    }

    pub async fn answer_review(
        &self,
        review: &str,
        accept: bool,
        request: ReviewRequest,
    ) -> anyhow::Result<ReviewSummary> {
        match self {
            Backend::Server(client) => {
                let verb = if accept { "accept" } else { "refuse" };
                client.data(Call::post(&["reviews", review, verb]).json(json!(request))).await
            }
            Backend::Directory(Directory { engine, caller }) => {
                let reviews = engine.reviews(caller);
                let answered = match accept {
                    true => reviews.accept(review, request.into()).await,
                    false => reviews.refuse(review, request.into()).await,
                };
                Ok(or_refusal(answered)?.into())
            }
        }
    }
}
