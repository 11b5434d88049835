//! The fields of definitions: for each its name, the shape of its value, a description and an example.
//!
//! Readers open every object with its [`Object`]. In tests they can take only fields that stand here, and while
//! debugging their ranges, units and choices must be those that stand here. The JSON Schema of definitions is generated
//! from the same tables.
//!
//! Not here: what fields mean for each other (the readers, and the rules in `schema/`).

mod graph;
mod step;
mod workflow;

#[cfg(test)]
pub use graph::OPERATORS;
pub use graph::{EDGE, EDGE_IGNORED, NODE, NODE_TYPES};
pub use step::{STEP, STEP_KEYS};
pub use workflow::{SCHEDULE_FIELDS, WORKFLOW};

use crate::values::Unit;

/// One field of an object.
#[derive(Clone, Copy)]
pub struct Def {
    pub name: &'static str,
    /// Other spellings with the same meaning; only one of them may be given.
    pub also: &'static [&'static str],
    pub shape: Shape,
    pub doc: &'static str,
    /// A value in JSON; empty if there is none.
    pub example: &'static str,
    /// The kinds of step that have the field; empty: all.
    pub kinds: &'static [K],
    /// The dialect of steps that has the field, if only one has it.
    pub only: Option<Only>,
    /// Whether null is a value rather than the same as leaving the field out.
    pub null: bool,
}

/// The shape of a value, as far as it can be judged without the rest of the document.
#[derive(Clone, Copy)]
pub enum Shape {
    Any,
    Text,
    /// Text of this form; the reader may know more about it.
    Form(&'static str),
    /// Text that is not blank and has no template.
    Constant,
    Flag,
    /// Only `true`.
    True,
    Number,
    /// A number of bytes, or text such as `64MB`.
    Size,
    /// A whole number, as a number or as text.
    Whole(u32, u32),
    /// A whole number, only as a number.
    Count(u32, u32),
    Length(Unit),
    /// A duration longer than zero.
    Positive(Unit),
    Choice(&'static [&'static str]),
    /// One of several words, in any case.
    AnyCase(&'static [&'static str]),
    /// A condition in the expression language.
    Condition,
    List(&'static Shape, Bounds),
    /// A list, or one entry without a list.
    OneOrMore(&'static Shape, Bounds),
    /// An object whose keys are the author's own names.
    Map(&'static Map),
    Object(&'static Object),
    Either(&'static [Shape]),
}

/// The least and the most entries.
pub type Bounds = (usize, usize);

pub const ANY_NUMBER: Bounds = (0, usize::MAX);

pub struct Map {
    pub value: Shape,
    /// The form of the keys; empty: any.
    pub keys: &'static str,
    pub bounds: Bounds,
}

/// An object with known fields.
pub struct Object {
    /// Its name in the schema.
    pub name: &'static str,
    pub doc: &'static str,
    pub fields: &'static [Def],
    pub rules: &'static [Rule],
    /// Fields that the engine does not use, with any value.
    pub ignored: &'static [&'static str],
    /// Whether unknown fields are accepted.
    pub open: bool,
}

/// What the fields of one object demand of each other. A field that is null counts as absent.
#[derive(Clone, Copy)]
pub enum Rule {
    /// At least one of them.
    Some(&'static [&'static str]),
    /// Exactly one of them.
    One(&'static [&'static str]),
    /// Not two of them.
    AtMostOne(&'static [&'static str]),
    /// Where the first is given, none of the others.
    Excludes(&'static str, &'static [&'static str]),
    /// The first only with one of the others.
    Needs(&'static str, &'static [&'static str]),
    /// Where the field has this value (as JSON), none of the others.
    Bars(&'static str, &'static str, &'static [&'static str]),
    /// Where the field has this value (as JSON), one of the others.
    Asks(&'static str, &'static str, &'static [&'static str]),
    /// The field only where the other has this value (as JSON).
    OnlyWith(&'static str, &'static str, &'static str),
}

/// The kinds of step, over all dialects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum K {
    Start,
    End,
    Http,
    Tool,
    Code,
    Query,
    Condition,
    Sleep,
    Webhook,
    Gate,
    Each,
    Child,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Only {
    Tasks,
    Flow,
}

/// The kinds that have attempts and a timeout.
pub const CALLS: &[K] = &[K::Http, K::Tool, K::Code, K::Query, K::Child];

pub const fn def(name: &'static str, shape: Shape, doc: &'static str, example: &'static str) -> Def {
    Def { name, also: &[], shape, doc, example, kinds: &[], only: None, null: false }
}

impl Def {
    pub const fn also(mut self, names: &'static [&'static str]) -> Def {
        self.also = names;
        self
    }

    pub const fn on(mut self, kinds: &'static [K]) -> Def {
        self.kinds = kinds;
        self
    }

    pub const fn only(mut self, dialect: Only) -> Def {
        self.only = Some(dialect);
        self
    }

    pub const fn null(mut self) -> Def {
        self.null = true;
        self
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    pub fn is_on(&self, kind: K) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

impl Object {
    pub const fn of(name: &'static str, doc: &'static str, fields: &'static [Def]) -> Object {
        Object { name, doc, fields, rules: &[], ignored: &[], open: false }
    }

    pub const fn rules(mut self, rules: &'static [Rule]) -> Object {
        self.rules = rules;
        self
    }

    pub const fn ignored(mut self, names: &'static [&'static str]) -> Object {
        self.ignored = names;
        self
    }

    pub const fn open(mut self) -> Object {
        self.open = true;
        self
    }

    pub fn find(&self, name: &str) -> Option<&'static Def> {
        self.fields.iter().find(|def| def.names().any(|known| known == name))
    }
}

/// An object whose keys are not known here.
pub static UNKNOWN: Object = Object::of("unknown", "", &[]).open();
pub static ANY: Shape = Shape::Any;

impl Shape {
    /// Whether nothing is known about the value.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Shape::Any)
    }

    /// The object that a value of this shape may be.
    pub fn object(&self) -> Option<&'static Object> {
        match self {
            Shape::Object(object) => Some(object),
            Shape::Either(shapes) => shapes.iter().find_map(Shape::object),
            _ => None,
        }
    }

    /// The shape of what a list or map of this shape contains.
    pub fn inner(&self) -> &'static Shape {
        match self {
            Shape::List(inner, _) | Shape::OneOrMore(inner, _) => inner,
            Shape::Map(map) => &map.value,
            Shape::Either(shapes) => shapes
                .iter()
                .find(|shape| matches!(shape, Shape::List(..) | Shape::OneOrMore(..) | Shape::Map(_)))
                .map_or(&ANY, Shape::inner),
            _ => &ANY,
        }
    }

    /// The least and the greatest whole number.
    pub fn range(&self) -> std::ops::RangeInclusive<u32> {
        match self {
            Shape::Whole(least, most) | Shape::Count(least, most) => *least..=*most,
            Shape::Either(shapes) => {
                let number = shapes.iter().find(|shape| matches!(shape, Shape::Whole(..) | Shape::Count(..)));
                number.map_or(0..=u32::MAX, Shape::range)
            }
            _ => 0..=u32::MAX,
        }
    }

    /// The unit of a bare number.
    pub fn unit(&self) -> Unit {
        match self {
            Shape::Length(unit) | Shape::Positive(unit) => *unit,
            Shape::Either(shapes) => {
                let length = shapes.iter().find(|shape| matches!(shape, Shape::Length(_) | Shape::Positive(_)));
                length.map_or(Unit::Seconds, Shape::unit)
            }
            Shape::List(inner, _) | Shape::OneOrMore(inner, _) => inner.unit(),
            _ => Unit::Seconds,
        }
    }

    /// The names of a choice.
    pub fn choices(&self) -> &'static [&'static str] {
        match self {
            Shape::Choice(names) => names,
            Shape::Either(shapes) => shapes.iter().map(Shape::choices).find(|names| !names.is_empty()).unwrap_or(&[]),
            _ => &[],
        }
    }
}
