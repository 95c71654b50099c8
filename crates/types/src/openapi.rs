//! Schemas of what a derive cannot tell: amounts are numbers or text.

use std::borrow::Cow;

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{OneOfBuilder, RefOr, schema::ObjectBuilder, schema::Schema, schema::Type},
};

use crate::quantity::{Size, Span};

fn amount(what: &str, number: Type, example: &str) -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(ObjectBuilder::new().schema_type(number).minimum(Some(0)))
        .item(ObjectBuilder::new().schema_type(Type::String).examples([example]))
        .description(Some(what))
        .into()
}

impl PartialSchema for Size {
    fn schema() -> RefOr<Schema> {
        amount("Bytes, or text with k, m, g or t. Answers use the number.", Type::Integer, "512m")
    }
}

impl ToSchema for Size {
    fn name() -> Cow<'static, str> {
        "Size".into()
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        amount(
            "Seconds, or text with ms, s, m, h or d. Answers use the number.",
            Type::Number,
            "30s",
        )
    }
}

impl ToSchema for Span {
    fn name() -> Cow<'static, str> {
        "Span".into()
    }
}
