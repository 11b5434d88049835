//! The results as JUnit XML, which build servers show beside a pull request.

use super::Verdict;
use std::fmt::Write;

pub fn report(verdicts: &[Verdict]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let failures = |list: &[&Verdict]| list.iter().filter(|verdict| !verdict.problems.is_empty()).count();
    let all: Vec<&Verdict> = verdicts.iter().collect();
    let _ = writeln!(text, "<testsuites tests=\"{}\" failures=\"{}\">", all.len(), failures(&all));
    for suite in all.chunk_by(|a, b| a.file == b.file) {
        let (name, tests) = (escaped(&suite[0].file), suite.len());
        let _ = writeln!(text, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{}\">", failures(suite));
        for verdict in suite {
            case(&mut text, verdict);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn case(text: &mut String, verdict: &Verdict) {
    let (name, class) = (escaped(&verdict.case), escaped(&verdict.workflow));
    let seconds = verdict.elapsed.as_secs_f64();
    let _ = write!(text, "    <testcase name=\"{name}\" classname=\"{class}\" time=\"{seconds:.3}\"");
    let Some(first) = verdict.problems.first() else {
        text.push_str("/>\n");
        return;
    };
    let message = escaped(first.lines().next().unwrap_or_default());
    let all = escaped(&verdict.problems.join("\n"));
    let _ = writeln!(text, ">\n      <failure message=\"{message}\">{all}</failure>\n    </testcase>");
}

/// XML has no way to write most control characters, so they are replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(c),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
