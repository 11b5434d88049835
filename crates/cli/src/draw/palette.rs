//! Colours by kind of step, for light and dark pages.

/// Kinds that share a colour. An unknown kind is [`Family::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Http,
    Tool,
    Sleep,
    Approval,
    Script,
    Condition,
    Scope,
    End,
    Other,
}

/// A line colour that is legible on the background, and a muted fill, for light and dark pages.
pub struct Colours {
    pub line: &'static str,
    pub fill: &'static str,
    pub dark_line: &'static str,
    pub dark_fill: &'static str,
}

impl Family {
    pub const ALL: [Self; 9] = [
        Self::Http,
        Self::Tool,
        Self::Sleep,
        Self::Approval,
        Self::Script,
        Self::Condition,
        Self::Scope,
        Self::End,
        Self::Other,
    ];

    pub fn of(kind: &str) -> Self {
        match kind {
            "http" | "request" | "webhook" | "fetch" => Self::Http,
            "tool" | "mcp" | "agent" | "llm" => Self::Tool,
            "sleep" | "wait" | "delay" | "timer" | "schedule" => Self::Sleep,
            "approval" | "signal" | "event" | "human" => Self::Approval,
            "javascript" | "script" | "code" | "transform" | "set" => Self::Script,
            "condition" | "if" | "switch" | "branch" | "router" => Self::Condition,
            "loop" | "for_each" | "while" | "repeat" | "parallel" | "scope" | "workflow" => Self::Scope,
            "start" | "end" | "trigger" | "stop" => Self::End,
            _ => Self::Other,
        }
    }

    /// The class name in style sheets; never the user's own text.
    pub fn class(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tool => "tool",
            Self::Sleep => "sleep",
            Self::Approval => "approval",
            Self::Script => "script",
            Self::Condition => "condition",
            Self::Scope => "scope",
            Self::End => "end",
            Self::Other => "other",
        }
    }

    pub fn colours(self) -> Colours {
        let [line, fill, dark_line, dark_fill] = match self {
            Self::Http => ["#2563eb", "#eff6ff", "#60a5fa", "#14233f"],
            Self::Tool => ["#7c3aed", "#f5f3ff", "#a78bfa", "#241a40"],
            Self::Sleep => ["#b45309", "#fffbeb", "#fbbf24", "#2e230d"],
            Self::Approval => ["#be185d", "#fdf2f8", "#f472b6", "#34142a"],
            Self::Script => ["#4d7c0f", "#f7fee7", "#a3e635", "#1d2a10"],
            Self::Condition => ["#0f766e", "#f0fdfa", "#2dd4bf", "#0d2b2b"],
            Self::Scope => ["#4f46e5", "#f5f6ff", "#818cf8", "#151a33"],
            Self::End => ["#15803d", "#f0fdf4", "#4ade80", "#0f2a1b"],
            Self::Other => ["#475569", "#f8fafc", "#94a3b8", "#1b2433"],
        };
        Colours { line, fill, dark_line, dark_fill }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_gets_a_class_of_ours_and_not_its_own_name() {
        assert_eq!(Family::of("\"><script>").class(), "other");
        assert_eq!(Family::of("for_each").class(), "scope");
    }

    #[test]
    fn every_family_has_a_class_of_its_own() {
        let classes: std::collections::BTreeSet<_> = Family::ALL.map(Family::class).into();
        assert_eq!(classes.len(), Family::ALL.len());
    }
}
