//! Turns a tool's result into the result of a step.

use super::connect::truncated;
use super::upstream::KnownTool;
use serde_json::Value;
use stepwell_core::event::{Failure, Outcome, Reply};

/// The structured content, where a lone `{"result": x}` counts as `x`; otherwise the text, parsed if it is JSON;
/// otherwise the content list.
pub async fn outcome(known: &KnownTool, mut answer: Value) -> Outcome {
    let name = &known.offered.name;
    let structured = answer.get_mut("structuredContent").map(Value::take);
    let content = answer.get_mut("content").map(Value::take);
    if structured.is_none() && !content.as_ref().is_some_and(Value::is_array) {
        let failure = Failure::new("bad_result", format!("`{name}` returned something that is not a tool result"));
        return Outcome::Failure { failure: Failure { may_have_happened: true, ..failure }, reply: None };
    }
    let content = content.unwrap_or_default();
    if answer.get("isError") == Some(&Value::Bool(true)) {
        let message_text = text(&content).filter(|text| !text.is_empty());
        let message = message_text
            .map_or_else(|| format!("`{name}` reported a failure"), |message_text| truncated(&message_text));
        let body = structured.unwrap_or(content);
        return Outcome::Failure { failure: Failure::new("tool_error", message), reply: Some(Reply::body(body)) };
    }
    let Some(structured) = structured else { return Outcome::Success(Reply::body(plain(content))) };
    if let Some(why) = known.bad_output(&structured).await {
        let message = format!("the result of `{name}` does not match its schema: {why}");
        let failure = Failure { may_have_happened: true, ..Failure::new("bad_result", message) };
        return Outcome::Failure { failure, reply: Some(Reply::body(structured)) };
    }
    Outcome::Success(Reply::body(unwrapped(structured)))
}

/// Removes the wrapper that many servers put around values that are not objects.
fn unwrapped(mut structured: Value) -> Value {
    match structured.as_object_mut() {
        Some(fields) if fields.len() == 1 && fields.contains_key("result") => {
            fields.remove("result").unwrap_or_default()
        }
        _ => structured,
    }
}

fn plain(content: Value) -> Value {
    match text(&content) {
        Some(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        None => content,
    }
}

/// The joined text, if all blocks are text.
fn text(content: &Value) -> Option<String> {
    let blocks = content.as_array().filter(|blocks| !blocks.is_empty())?;
    let of = |block: &Value| {
        let is_text = block.get("type").and_then(Value::as_str) == Some("text");
        block.get("text").and_then(Value::as_str).filter(|_| is_text).map(str::to_owned)
    };
    blocks.iter().map(of).collect::<Option<Vec<String>>>().map(|texts| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use stepwell_engine::upstream::Offered;

    fn tool() -> KnownTool {
        KnownTool::new(Offered {
            name: "s__t".into(),
            tool: "t".into(),
            title: None,
            description: String::new(),
            input_schema: json!({"type": "object"}),
            output_schema: Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}})),
            annotations: None,
        })
    }

    async fn check(answer: Value, expected: Value) {
        let body = match outcome(&tool(), answer.clone()).await {
            Outcome::Success(reply) => (*reply.body).clone(),
            Outcome::Failure { failure, reply } => {
                json!({"code": failure.code, "message": failure.message, "reply": reply.map(|reply| reply.body)})
            }
        };
        assert_eq!(body, expected, "{answer}");
    }

    #[tokio::test]
    async fn a_result_is_read_from_any_of_its_forms() {
        let text = |text: &str| json!({"type": "text", "text": text});
        check(json!({"content": [text("x")], "structuredContent": {"n": 1}}), json!({"n": 1})).await;
        check(json!({"structuredContent": {"result": [1]}}), json!([1])).await;
        check(json!({"structuredContent": {"result": 1, "n": 2}}), json!({"result": 1, "n": 2})).await;
        check(
            json!({"structuredContent": null}),
            json!({"code": "bad_result", "reply": null,
            "message": "the result of `s__t` does not match its schema: `result`: null is not of type \"object\""}),
        )
        .await;
        check(json!({"content": [text("{\"a\": 1}")]}), json!({"a": 1})).await;
        check(json!({"content": [text("true")]}), json!(true)).await;
        check(json!({"content": [text("two"), text("lines")]}), json!("two\nlines")).await;
        check(json!({"content": []}), json!([])).await;
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        check(json!({"content": [text("x"), image]}), json!([text("x"), image])).await;
        check(
            json!({"content": [text("no")], "isError": true}),
            json!({"code": "tool_error", "message": "no", "reply": [text("no")]}),
        )
        .await;
        check(
            json!({}),
            json!({"code": "bad_result", "message": "`s__t` returned something that is not a tool result",
            "reply": null}),
        )
        .await;
    }
}
