//! An order: a tool charges, a person approves, another tool ships. `cargo run --example orders`

use serde_json::{Value, json};
use stepwell_embedded::{Answer, Call, Engine, ToolError, ToolSpec};

const ORDER: &str = "
name: order
tasks:
  charge: {tool: charge, args: {cents: '{{input.cents}}'}, retry: {attempts: 3, first: 10ms}}
  ask: {needs: charge, approval: {message: 'Ship {{tasks.charge.body.payment}}?'}}
  ship: {needs: ask, tool: ship, args: {payment: '{{tasks.charge.body.payment}}'}}
output: {parcel: '{{tasks.ship.body.parcel}}'}
";

async fn charge(call: Call) -> Result<Value, ToolError> {
    let cents = call.args["cents"].as_u64().ok_or_else(|| ToolError::new("no_price", "`cents` is missing"))?;
    // The first attempt fails, as services do.
    if call.attempt == 1 {
        return Err(ToolError::retryable("busy", "try again"));
    }
    Ok(json!({"payment": format!("{cents} cents from {}", call.user)}))
}

async fn ship(call: Call) -> Result<Value, ToolError> {
    Ok(json!({"parcel": format!("parcel for {}", call.args["payment"].as_str().unwrap_or_default())}))
}

#[tokio::main]
pub async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let price = json!({"type": "object", "properties": {"cents": {"type": "integer"}}, "required": ["cents"]});
    let charging = ToolSpec::new("charge").description("Takes the money").schema(price).idempotent();
    let engine = Engine::builder().tool_with(charging, charge).tool("ship", ship).open(directory.path()).await?;
    engine.define(ORDER).await?;

    let mut changes = engine.changes();
    let run = engine.acting_for("ann").start("order", json!({"cents": 500})).await?;
    let asked = loop {
        if let Some(asked) = engine.approvals().await?.into_iter().next() {
            break asked;
        }
        changes.next().await;
    };
    println!("{}", asked.asks["message"]);
    let answer = Answer { digest: asked.digest, ..Answer::default() };
    engine.acting_for("bob").approve(&run, &asked.step, answer).await?;

    let ended = engine.wait(&run).await?;
    println!("{} {}", ended.status, ended.output);
    assert_eq!(ended.output, json!({"parcel": "parcel for 500 cents from ann"}));
    engine.shutdown().await;
    Ok(())
}
