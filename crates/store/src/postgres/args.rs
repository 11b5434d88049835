//! Statement arguments with their types, so that the server need not be asked for them before a statement is sent.

use tokio_postgres::types::{ToSql, Type};

pub type Arg<'a> = (&'a (dyn ToSql + Sync), Type);

/// A value whose database type is known.
pub trait Typed: ToSql + Sync {
    const TYPE: Type;
}

macro_rules! typed {
    ($($rust:ty => $one:ident, $many:ident;)*) => {
        $(impl Typed for $rust { const TYPE: Type = Type::$one; }
        impl Typed for Option<$rust> { const TYPE: Type = Type::$one; }
        impl Typed for Vec<$rust> { const TYPE: Type = Type::$many; }
        impl Typed for Vec<Option<$rust>> { const TYPE: Type = Type::$many; })*
    };
}

typed! {
    i64 => INT8, INT8_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i16 => INT2, INT2_ARRAY;
    f64 => FLOAT8, FLOAT8_ARRAY;
    bool => BOOL, BOOL_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    String => TEXT, TEXT_ARRAY;
    &[u8] => BYTEA, BYTEA_ARRAY;
}

impl<T: Typed> Typed for &T {
    const TYPE: Type = T::TYPE;
}

pub fn arg<T: Typed>(value: &T) -> Arg<'_> {
    (value, T::TYPE)
}

/// A list of arguments.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$($crate::postgres::args::arg(&$value)),*] };
}
pub(crate) use args;
