//! Parses an [`Expr`] by recursive descent. Only [`Parser::nested`] recurses, and it counts the depth.

use super::check;
use super::decimal::Operation;
use super::functions::{self, Function};
use super::lex::{Lexer, Token};
use super::{Comparison, Expr, Grammar, List, Literal, Node, NodeIx, Path, Segment, Span, SyntaxError};
use super::{MAX_DEPTH, MAX_NODES, MAX_SOURCE};
use crate::nearest::nearest;

pub(super) fn parse(source: &str, grammar: Grammar) -> Result<Expr, SyntaxError> {
    if source.len() > MAX_SOURCE {
        let message = format!("the expression has {} bytes, but at most {MAX_SOURCE} are allowed", source.len());
        return Err(SyntaxError::new(Span::new(0, source.len()), message));
    }
    let expr = Expr { source: source.into(), grammar, nodes: Vec::new(), operands: Vec::new(), root: NodeIx(0) };
    let mut lexer = Lexer::new(source);
    let (token, span) = lexer.next()?;
    if token == Token::End {
        return Err(SyntaxError::new(span, "the expression is empty"));
    }
    let mut parser = Parser { lexer, token, span, end: 0, expr, depth: 0 };
    parser.expr.root = parser.any()?;
    if parser.token != Token::End {
        return Err(parser.trailing());
    }
    match parser.expr.raw_inside() {
        None => Ok(parser.expr),
        Some(span) => {
            Err(SyntaxError::new(span, "`raw` must be around the whole expression").hint("write raw(a ?? b)"))
        }
    }
}

struct Parser<'s> {
    lexer: Lexer<'s>,
    /// The next token, and its span.
    token: Token,
    span: Span,
    /// Where the token before it ends.
    end: u32,
    expr: Expr,
    depth: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl Parser<'_> {
    fn advance(&mut self) -> Parsed<Token> {
        let (token, span) = self.lexer.next()?;
        self.end = self.span.end;
        self.span = span;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.span, message)
    }

    fn push(&mut self, node: Node) -> Parsed<NodeIx> {
        if self.expr.nodes.len() >= MAX_NODES {
            return Err(self.error(format!("the expression has more than {MAX_NODES} parts")));
        }
        self.expr.nodes.push(node);
        Ok(NodeIx(self.expr.nodes.len() as u32 - 1))
    }

    fn list(&mut self, operands: &[NodeIx]) -> List {
        let start = self.expr.operands.len() as u32;
        self.expr.operands.extend_from_slice(operands);
        List { start, len: operands.len() as u32 }
    }

    /// `operand (sign operand)*`, as one node.
    fn chain(
        &mut self,
        sign: Token,
        operand: fn(&mut Self) -> Parsed<NodeIx>,
        node: fn(List) -> Node,
    ) -> Parsed<NodeIx> {
        let first = operand(self)?;
        if self.token != sign {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.token == sign {
            self.advance()?;
            operands.push(operand(self)?);
        }
        let list = self.list(&operands);
        self.push(node(list))
    }

    fn any(&mut self) -> Parsed<NodeIx> {
        self.chain(Token::Or, Self::all, Node::Any)
    }

    fn all(&mut self) -> Parsed<NodeIx> {
        self.chain(Token::And, Self::comparison, Node::All)
    }

    fn sum(&mut self) -> Parsed<NodeIx> {
        self.calculation(Operation::added, Self::product)
    }

    fn product(&mut self) -> Parsed<NodeIx> {
        self.calculation(Operation::multiplied, Self::default)
    }

    /// `operand (sign operand)*`, grouped from the left. A chain nests, but no deeper than [`MAX_NODES`].
    fn calculation(
        &mut self,
        written: fn(&Token) -> Option<Operation>,
        operand: fn(&mut Self) -> Parsed<NodeIx>,
    ) -> Parsed<NodeIx> {
        let start = self.span.start;
        let mut left = operand(self)?;
        while let Some(operation) = written(&self.token) {
            let sign = self.span;
            self.advance()?;
            let right = operand(self)?;
            check::operands(&self.expr, operation, [left, right], sign)?;
            let span = Span { start, end: self.end };
            left = self.push(Node::Calculate { operation, left, right, span })?;
        }
        Ok(left)
    }

    fn default(&mut self) -> Parsed<NodeIx> {
        self.chain(Token::Default, Self::unary, Node::Default)
    }

    fn comparison(&mut self) -> Parsed<NodeIx> {
        let left = self.sum()?;
        let Some(comparison) = Comparison::written(&self.token) else { return Ok(left) };
        self.advance()?;
        let right = self.sum()?;
        if Comparison::written(&self.token).is_some() {
            return Err(self.error("comparisons do not chain").hint("join two of them with `&&`"));
        }
        match self.same_text(comparison, left, right) {
            Some(ix) => Ok(ix),
            None => self.push(Node::Compare(comparison, left, right)),
        }
    }

    /// Flow's `result == literal`, in either order. The comparison replaces the literal's node, so that a bare word is
    /// no longer among the paths to bind.
    fn same_text(&mut self, comparison: Comparison, left: NodeIx, right: NodeIx) -> Option<NodeIx> {
        let negated = match comparison {
            Comparison::Equal => false,
            Comparison::NotEqual => true,
            _ => return None,
        };
        if self.expr.grammar != Grammar::Flow {
            return None;
        }
        [(left, right), (right, left)].into_iter().find_map(|(path, literal)| {
            let Node::Path(result) = self.expr.node(path) else { return None };
            if !result.begins_with("result") {
                return None;
            }
            let text: Box<str> = match self.expr.node(literal) {
                Node::Literal(Literal::Null) => "".into(),
                Node::Literal(Literal::Bool(bool)) => bool.to_string().into(),
                Node::Literal(Literal::Number(_, span)) => self.expr.text(*span).into(),
                Node::Literal(Literal::Text(text)) => text.clone(),
                Node::Path(Path { segments, .. }) => match segments.as_slice() {
                    [Segment::Key(word)] => word.clone(),
                    _ => return None,
                },
                _ => return None,
            };
            let text = Some(text).filter(|text| !matches!(&**text, "" | "nil"));
            self.expr.nodes[literal.0 as usize] = Node::SameText { path, text, negated };
            Some(literal)
        })
    }

    fn unary(&mut self) -> Parsed<NodeIx> {
        let sign = self.span;
        match self.token {
            Token::Not => {
                self.advance()?;
                let of = self.nested(Self::unary)?;
                self.push(Node::Not(of))
            }
            Token::Minus => {
                self.advance()?;
                let of = self.nested(Self::unary)?;
                check::operands(&self.expr, Operation::Subtract, [of, of], sign)?;
                self.push(Node::Negate { of, span: Span { start: sign.start, end: self.end } })
            }
            _ => self.primary(),
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("the expression is nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn primary(&mut self) -> Parsed<NodeIx> {
        let span = self.span;
        if !matches!(self.token, Token::Path(_) | Token::Number(_) | Token::Text(_) | Token::Open) {
            return Err(self.no_operand());
        }
        match self.advance()? {
            Token::Number(number) => self.push(Node::Literal(Literal::Number(number, span))),
            Token::Text(text) => self.push(Node::Literal(Literal::Text(text.into()))),
            Token::Path(segments) if self.token == Token::Open => self.call(segments, span),
            Token::Path(segments) => self.name(segments, span),
            _ => {
                let inner = self.nested(Self::any)?;
                self.close(span)?;
                Ok(inner)
            }
        }
    }

    fn name(&mut self, segments: Vec<Segment>, span: Span) -> Parsed<NodeIx> {
        let word = match segments.as_slice() {
            [Segment::Key(word)] => &**word,
            _ => "",
        };
        let literal = match word {
            "true" => Literal::Bool(true),
            "false" => Literal::Bool(false),
            "null" | "nil" => Literal::Null,
            "not" if self.token.opens_operand() => {
                if let Some(words) = self.several_words(span) {
                    let error = SyntaxError::new(span, "a string of several words needs quotes");
                    return Err(error.hint(format!("write \"{words}\"")));
                }
                return Err(SyntaxError::new(span, "`not` is not an operator").hint("use `!`"));
            }
            _ => return self.push(Node::Path(Path::unbound(segments, span))),
        };
        self.push(Node::Literal(literal))
    }

    /// Bare words that end the expression after a comparison: `result == not found`.
    fn several_words(&self, first: Span) -> Option<&str> {
        let source = &*self.expr.source;
        let (before, words) = (source.get(..first.start as usize)?, source.get(first.start as usize..)?.trim_end());
        let plain = words.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
        (plain && before.trim_end().ends_with('=')).then_some(words)
    }

    /// Parses a call, after the name and at the opening parenthesis.
    fn call(&mut self, segments: Vec<Segment>, span: Span) -> Parsed<NodeIx> {
        let function = function(&segments, span)?;
        let open = self.span;
        self.advance()?;
        let mut arguments = Vec::new();
        if self.token != Token::Close {
            arguments.push(self.nested(Self::any)?);
        }
        while self.token == Token::Comma {
            self.advance()?;
            arguments.push(self.nested(Self::any)?);
        }
        let span = Span { end: self.span.end, ..span };
        self.close(open)?;
        let (least, most) = function.arity();
        if !(least..=most).contains(&arguments.len()) {
            return Err(SyntaxError::new(span, wrong_count(function, arguments.len())));
        }
        check::arguments(&self.expr, function, &arguments, span)?;
        let list = self.list(&arguments);
        self.push(Node::Call { function, list, span })
    }

    /// Expects the end of the parenthesis `open`.
    fn close(&mut self, open: Span) -> Parsed<()> {
        match self.token {
            Token::Close => self.advance().map(drop),
            Token::End => Err(SyntaxError::new(open, "`(` is not closed")),
            _ => Err(self.trailing()),
        }
    }

    fn no_operand(&self) -> SyntaxError {
        let what = match self.token {
            Token::End => return self.error("expected a value, but the expression ends here"),
            _ => self.expr.text(self.span),
        };
        self.error(format!("expected a value, found `{what}`"))
    }

    /// The error for a token that cannot follow a complete value.
    fn trailing(&self) -> SyntaxError {
        let written = self.expr.text(self.span);
        let error = self.error(format!("unexpected `{written}` after a complete value"));
        match &self.token {
            Token::Close => self.error("`)` has no matching `(`"),
            Token::Comma => error.hint("only the arguments of a function are separated by `,`"),
            token => match (token.word().map(str::to_ascii_lowercase).as_deref(), self.expr.grammar) {
                (Some("and"), _) => error.hint("use `&&`"),
                (Some("or"), _) => error.hint("use `||`"),
                (Some("is" | "eq"), _) => error.hint("use `==`"),
                (Some("in"), _) => error.hint("use contains(list, item)"),
                (_, Grammar::Flow) => error.hint("a string of several words needs quotes"),
                (_, Grammar::Standard) => error.hint("an operator such as `==` or `&&` is missing before it"),
            },
        }
    }
}

impl Expr {
    /// A call of `raw` that is not the whole expression, where it would change nothing.
    fn raw_inside(&self) -> Option<Span> {
        let nodes = self.nodes.iter().enumerate().filter(|(n, _)| *n as u32 != self.root.0);
        nodes.into_iter().find_map(|(_, node)| match node {
            Node::Call { function: Function::Raw, span, .. } => Some(*span),
            _ => None,
        })
    }
}

fn function(segments: &[Segment], span: Span) -> Parsed<Function> {
    let [Segment::Key(name)] = segments else {
        let message = "only a plain name can be called";
        return Err(SyntaxError::new(span, message).hint("write len(list), not list.len()"));
    };
    if matches!(&**name, "and" | "or" | "not") {
        let use_instead = if &**name == "not" { "use `!`" } else { "use `&&` and `||`" };
        return Err(SyntaxError::new(span, format!("`{name}` is not an operator")).hint(use_instead));
    }
    Function::named(name).ok_or_else(|| {
        let error = SyntaxError::new(span, format!("unknown function `{name}`"));
        if let Some((_, hint)) = ELSEWHERE.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
            return error.hint(*hint);
        }
        match nearest(name, functions::NAMES.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known: {}", functions::NAMES.join(", "))),
        }
    })
}

/// Functions of other languages, and what to write instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("now", "`now` is a name: write now, without parentheses"),
    ("length", "did you mean `len`?"),
    ("size", "did you mean `len`?"),
    ("count", "did you mean `len`?"),
    ("substring", "did you mean `slice`?"),
    ("substr", "did you mean `slice`?"),
    ("concat", "write values side by side in a template: {{a}}{{b}}"),
    ("average", "write sum(list) / len(list)"),
    ("avg", "write sum(list) / len(list)"),
    ("tolower", "did you mean `lower`?"),
    ("toupper", "did you mean `upper`?"),
    ("format", "date(time, add, format) formats a time"),
    ("today", "write date(now, null, '%Y-%m-%d')"),
    ("encodeuricomponent", "did you mean `urlencode`?"),
    ("distinct", "did you mean `unique`?"),
    ("default", "write x ?? y"),
    ("coalesce", "write x ?? y"),
    ("int", "did you mean `floor` or `number`?"),
];

fn wrong_count(function: Function, got: usize) -> String {
    let name = function.name();
    match function.arity() {
        (1, 1) => format!("`{name}` takes one argument, but got {got}"),
        (least, most) if least == most => format!("`{name}` takes {least} arguments, but got {got}"),
        (least, most) => format!("`{name}` takes {least} to {most} arguments, but got {got}"),
    }
}

impl Operation {
    fn added(token: &Token) -> Option<Operation> {
        match token {
            Token::Plus => Some(Operation::Add),
            Token::Minus => Some(Operation::Subtract),
            _ => None,
        }
    }

    fn multiplied(token: &Token) -> Option<Operation> {
        match token {
            Token::Times => Some(Operation::Multiply),
            Token::Over => Some(Operation::Divide),
            Token::Percent => Some(Operation::Remainder),
            _ => None,
        }
    }
}

impl Comparison {
    fn written(token: &Token) -> Option<Comparison> {
        Some(match token {
            Token::Equal => Comparison::Equal,
            Token::NotEqual => Comparison::NotEqual,
            Token::Less => Comparison::Less,
            Token::LessOrEqual => Comparison::LessOrEqual,
            Token::Greater => Comparison::Greater,
            Token::GreaterOrEqual => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }
}
