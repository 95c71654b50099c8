//! Says in plain words why a text is not what was asked for.
//!
//! The parsers speak of Rust's types; a client has never heard of them.

/// The message of a parser with its types replaced.
pub(crate) fn plain(message: &str) -> String {
    let message = message
        .replace("unknown variant", "unknown value")
        .replace("invalid type: map,", "invalid type: object,")
        .replace("invalid type: sequence,", "invalid type: list,");
    match message.split_once("expected ") {
        Some((before, expected)) => format!("{before}expected {}", what(expected)),
        None => message,
    }
}

fn what(expected: &str) -> &str {
    let kind = expected.split([' ', ',']).next().unwrap_or_default();
    match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" => "true or false",
        "struct" | "internally" => "an object",
        "enum" | "variant" => "one of the words it knows",
        "string" => "a text",
        "unit" | "tuple" | "newtype" | "option" => "something else",
        "a" => match expected {
            "a string" => "a text",
            "a boolean" => "true or false",
            "a map" => "an object",
            "a sequence" => "a list",
            _ => expected,
        },
        _ => expected,
    }
}
