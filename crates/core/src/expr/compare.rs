//! The operators of a graph editor's condition rows: `(leftValue, operator, rightValue)`.
//!
//! Looser than the comparisons of the language, because the fields of such an editor hold text: a number and a string
//! that parses as a number compare as numbers, and different types compare by their text.

use super::number::{self, Num};
use super::value::View;
use super::{MAX_SOURCE, Val};
use regex_lite::{Regex, RegexBuilder};
use std::cmp::Ordering;

/// Bytes of a compiled pattern. The cost of matching is the product of this and the subject's length, and the planner
/// waits for it: about 400 ms at both limits.
const MAX_PATTERN_SIZE: usize = 32 * 1024;
/// Bytes of a string that a pattern is matched against.
const MAX_SUBJECT: usize = 64 * 1024;
/// Nesting of groups in a pattern.
const MAX_PATTERN_DEPTH: u32 = 32;

macro_rules! operators {
    ($($name:literal $variant:ident,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Operator { $($variant),* }

        impl Operator {
            pub fn parse(name: &str) -> Option<Operator> {
                match name { $($name => Some(Operator::$variant),)* _ => None }
            }

            pub fn name(self) -> &'static str {
                match self { $(Operator::$variant => $name),* }
            }

            pub fn names() -> &'static [&'static str] {
                &[$($name),*]
            }
        }
    };
}

operators! {
    "equals" Equals,
    "not_equals" NotEquals,
    "contains" Contains,
    "not_contains" NotContains,
    "starts_with" StartsWith,
    "ends_with" EndsWith,
    "greater_than" GreaterThan,
    "less_than" LessThan,
    "greater_or_equal" GreaterOrEqual,
    "less_or_equal" LessOrEqual,
    "is_empty" IsEmpty,
    "is_not_empty" IsNotEmpty,
    "matches_regex" MatchesRegex,
    "expression" Expression,
}

impl Operator {
    /// Whether the operator uses `rightValue`.
    pub fn takes_right(self) -> bool {
        !matches!(self, Operator::IsEmpty | Operator::IsNotEmpty | Operator::Expression)
    }
}

/// Whether `left op right` holds. `expression` tests whether `left` is truthy. A right side that is not a valid pattern
/// matches nothing; a pattern known when the workflow is defined should be a [`Pattern`], so that an invalid one is
/// rejected then.
pub fn test(operator: Operator, left: &Val<'_>, right: &Val<'_>) -> bool {
    let ordered = |accepts: fn(Ordering) -> bool| order(left, right).is_some_and(accepts);
    match operator {
        Operator::Equals => equal(left, right),
        Operator::NotEquals => !equal(left, right),
        Operator::Contains => contains(left, right),
        Operator::NotContains => !contains(left, right),
        Operator::StartsWith => texts(left, right, |left, right| left.starts_with(right)),
        Operator::EndsWith => texts(left, right, |left, right| left.ends_with(right)),
        Operator::GreaterThan => ordered(Ordering::is_gt),
        Operator::LessThan => ordered(Ordering::is_lt),
        Operator::GreaterOrEqual => ordered(Ordering::is_ge),
        Operator::LessOrEqual => ordered(Ordering::is_le),
        Operator::IsEmpty => is_empty(left),
        Operator::IsNotEmpty => !is_empty(left),
        Operator::MatchesRegex => {
            right.text().and_then(|pattern| Pattern::new(&pattern).ok()).is_some_and(|pattern| pattern.matches(left))
        }
        Operator::Expression => left.is_true(),
    }
}

fn equal(left: &Val<'_>, right: &Val<'_>) -> bool {
    match (left.view(), right.view()) {
        (View::Text(left), View::Text(right)) => left == right,
        (View::Number(left), View::Text(text)) | (View::Text(text), View::Number(left)) => {
            number::parse(text.trim()).is_some_and(|right| left.order(Num::of(&right)) == Ordering::Equal)
        }
        (view, other) => view.equals(other) || texts(left, right, |left, right| left == right),
    }
}

fn contains(left: &Val<'_>, right: &Val<'_>) -> bool {
    match left.view() {
        View::List(items) => items.iter().any(|item| equal(&Val::Json(item), right)),
        View::Object(map) => right.text().is_some_and(|key| map.contains_key(&*key)),
        _ => texts(left, right, |left, right| left.contains(right)),
    }
}

/// Two strings that both parse as numbers compare as numbers: the fields of an editor hold only strings.
fn order(left: &Val<'_>, right: &Val<'_>) -> Option<Ordering> {
    match (numeric(left), numeric(right)) {
        (Some(left), Some(right)) => Some(left.order(right)),
        _ => left.view().order(right.view()),
    }
}

fn numeric(value: &Val<'_>) -> Option<Num> {
    match value.view() {
        View::Number(number) => Some(number),
        View::Text(text) => number::parse(text.trim()).map(|number| Num::of(&number)),
        _ => None,
    }
}

fn texts(left: &Val<'_>, right: &Val<'_>, test: impl Fn(&str, &str) -> bool) -> bool {
    left.text().zip(right.text()).is_some_and(|(left, right)| test(&left, &right))
}

fn is_empty(value: &Val<'_>) -> bool {
    match value.view() {
        View::Null => true,
        View::Text(text) => text.is_empty(),
        View::List(list) => list.is_empty(),
        View::Object(map) => map.is_empty(),
        View::Bool(_) | View::Number(_) => false,
    }
}

/// A compiled regular expression. Matching takes time linear in the subject, whatever the pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a regular expression: {0}")]
pub struct PatternError(String);

impl Pattern {
    pub fn new(pattern: &str) -> Result<Pattern, PatternError> {
        if pattern.len() > MAX_SOURCE {
            return Err(PatternError(format!("it has {} bytes, but at most {MAX_SOURCE} are allowed", pattern.len())));
        }
        RegexBuilder::new(pattern)
            .size_limit(MAX_PATTERN_SIZE)
            .nest_limit(MAX_PATTERN_DEPTH)
            .build()
            .map(Pattern)
            .map_err(|error| PatternError(error.to_string()))
    }

    /// Whether the pattern matches anywhere in the value's text. It never matches a text over 64 KB.
    pub fn matches(&self, value: &Val<'_>) -> bool {
        value.text().is_some_and(|text| text.len() <= MAX_SUBJECT && self.0.is_match(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn check(left: Value, operator: &str, right: Value, expected: bool) {
        let operator = Operator::parse(operator).unwrap();
        assert_eq!(test(operator, &Val::Json(&left), &Val::Json(&right)), expected, "{left} {operator:?} {right}");
    }

    #[test]
    fn equality_converts_a_string_to_the_type_of_the_other_side() {
        check(json!(100), "equals", json!("100.0"), true);
        check(json!(" 5 "), "equals", json!(5), true);
        check(json!("1"), "equals", json!("1.0"), false);
        check(json!(true), "equals", json!("true"), true);
        check(json!(null), "equals", json!(""), true);
        check(json!({"a": 1, "b": 2}), "equals", json!({"b": 2.0, "a": 1}), true);
        check(json!([1, 2]), "equals", json!("[1,2]"), true);
        check(json!("a"), "not_equals", json!("b"), true);
        check(json!(0), "equals", json!(""), false);
    }

    #[test]
    fn contains_searches_strings_lists_and_objects() {
        check(json!("workflow"), "contains", json!("flow"), true);
        check(json!([1, 2]), "contains", json!("2"), true);
        check(json!([1, 2]), "not_contains", json!(3), true);
        check(json!({"a": null}), "contains", json!("a"), true);
        check(json!(1234), "contains", json!("23"), true);
        check(json!(null), "contains", json!("a"), false);
        check(json!("workflow"), "starts_with", json!("work"), true);
        check(json!("workflow"), "ends_with", json!("work"), false);
    }

    #[test]
    fn ordering_is_numeric_if_both_sides_are_numbers() {
        check(json!(10), "greater_than", json!("9"), true);
        check(json!("10"), "greater_than", json!("9"), true);
        check(json!("2024-10-01"), "less_than", json!("2024-11-01"), true);
        check(json!("10"), "less_than", json!("x"), true);
        check(json!(5), "greater_or_equal", json!(5.0), true);
        check(json!(5), "less_or_equal", json!(4), false);
        check(json!(null), "less_than", json!(1), false);
        check(json!(null), "greater_or_equal", json!(null), false);
    }

    #[test]
    fn only_null_strings_lists_and_objects_can_be_empty() {
        for empty in [json!(null), json!(""), json!([]), json!({})] {
            check(empty.clone(), "is_empty", json!("ignored"), true);
            check(empty, "is_not_empty", json!(null), false);
        }
        check(json!(0), "is_empty", json!(null), false);
        check(json!(false), "is_empty", json!(null), false);
        check(json!([]), "expression", json!(null), true);
        check(json!(0), "expression", json!(null), false);
    }

    #[test]
    fn a_pattern_matches_anywhere_and_an_invalid_one_is_rejected() {
        check(json!("order-1234"), "matches_regex", json!(r"\d{4}$"), true);
        check(json!(1234), "matches_regex", json!("^12"), true);
        check(json!("abc"), "matches_regex", json!("("), false);
        assert_eq!(
            Pattern::new("a(").unwrap_err().to_string(),
            "not a regular expression: found open group without closing ')'"
        );
        assert!(Pattern::new("((((a{100}){100}){100}){100})").is_err());
        assert!(Pattern::new("a").unwrap().matches(&Val::Str(&"a".repeat(MAX_SUBJECT))));
        assert!(!Pattern::new("a").unwrap().matches(&Val::Str(&"a".repeat(MAX_SUBJECT + 1))));
        assert!(Pattern::new(&"(".repeat(5_000)).is_err());
        assert!(Pattern::new(&format!("{}a{}", "(".repeat(40), ")".repeat(40))).is_err());
    }

    #[test]
    fn every_name_finds_its_operator() {
        for name in Operator::names() {
            assert_eq!(Operator::parse(name).map(Operator::name), Some(*name));
        }
        assert_eq!(Operator::names().len(), 14);
        assert_eq!(Operator::parse("Equals"), None);
    }

    proptest! {
        #[test]
        fn every_operator_accepts_any_two_values(
            left in crate::expr::tests::any_json(),
            right in crate::expr::tests::any_json(),
        ) {
            let [left, right] = [&left, &right].map(Val::Json);
            for operator in Operator::names().iter().filter_map(|name| Operator::parse(name)) {
                test(operator, &left, &right);
            }
            prop_assert_ne!(test(Operator::Equals, &left, &right), test(Operator::NotEquals, &left, &right));
            prop_assert_eq!(test(Operator::Equals, &left, &right), test(Operator::Equals, &right, &left));
        }
    }
}
