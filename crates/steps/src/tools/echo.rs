//! The `echo` tool: returns its arguments. Benchmarks use it as a no-op, so it checks and copies nothing.

use crate::tool::{Tool, ToolSpec};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use stepwell_core::event::{Outcome, Reply};
use stepwell_engine::StepCall;

pub struct Echo {
    spec: ToolSpec,
}

impl Echo {
    pub fn new() -> Echo {
        let description = "Returns its arguments unchanged.".into();
        Echo {
            spec: ToolSpec {
                name: "echo".into(),
                description,
                input_schema: json!({"type": "object"}),
                idempotent: true,
            },
        }
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Arc<Value>, _ctx: &StepCall) -> Outcome {
        Outcome::Success(Reply { body: args, ..Reply::default() })
    }
}
