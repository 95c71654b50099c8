//! Settings laid over settings: tables of TOML values, with the defaults as the list of what
//! there is and of which type.

use toml::{Table, Value};

use crate::{Error, Result, near};

/// Every key of a table, its tables before it, in order: `server.listen`.
pub(crate) fn keys(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inner) => {
                found.extend(keys(inner).into_iter().map(|key| format!("{name}.{key}")));
            }
            _ => found.push(name.clone()),
        }
    }
    found
}

/// The value of a key such as `server.listen`.
pub(crate) fn value<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        Some((outer, rest)) => value(table.get(outer)?.as_table()?, rest),
        None => table.get(key),
    }
}

/// Puts a value in the place of the one `key` has. The key must be there.
pub(crate) fn set(table: &mut Table, key: &str, new: Value) {
    let place = match key.split_once('.') {
        Some((outer, rest)) => {
            if let Some(Value::Table(inner)) = table.get_mut(outer) {
                return set(inner, rest, new);
            }
            None
        }
        None => table.get_mut(key),
    };
    if let Some(place) = place {
        *place = new;
    }
}

/// Refuses a key that `known` does not have, naming those it may have meant.
pub(crate) fn check_key(known: &Table, key: &str) -> Result<()> {
    if value(known, key).is_some_and(|value| !value.is_table()) {
        return Ok(());
    }
    let all = keys(known);
    let inside = format!("{key}.");
    if all.iter().any(|other| other.starts_with(&inside)) {
        return Err(Error::new(format!("`{key}` is a table of settings, not a setting")));
    }
    let meant = near(key, all.iter().map(String::as_str));
    let error = Error::new(format!("there is no setting `{key}`"));
    Err(if meant.is_empty() {
        error.hint("`atoll config default` shows every setting")
    } else {
        error.hint(format!("did you mean `{}`?", meant.join("`, `")))
    })
}

/// Reads what a variable says as the type its key has by default.
pub(crate) fn parse(default: &Value, text: &str) -> Result<Value> {
    let wrong = |wanted: &str| Error::new(format!("`{text}` is not {wanted}"));
    Ok(match default {
        Value::Boolean(_) => match text {
            "true" | "1" | "yes" => Value::Boolean(true),
            "false" | "0" | "no" => Value::Boolean(false),
            _ => return Err(wrong("true or false")),
        },
        Value::Integer(_) => Value::Integer(text.parse().map_err(|_| wrong("a whole number"))?),
        Value::Float(_) => Value::Float(text.parse().map_err(|_| wrong("a number"))?),
        Value::Array(_) => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        ),
        _ => Value::String(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_read_as_its_key_is_written() {
        let list = Value::Array(Vec::new());

        assert_eq!(parse(&Value::Boolean(false), "yes"), Ok(Value::Boolean(true)));
        assert_eq!(parse(&Value::Integer(1), "12"), Ok(Value::Integer(12)));
        assert_eq!(parse(&list, "a, b,"), Ok(Value::Array(vec!["a".into(), "b".into()])));
        assert!(parse(&Value::Boolean(false), "maybe").is_err());
        assert!(parse(&Value::Integer(1), "many").is_err());
    }

    #[test]
    fn a_table_is_no_setting() {
        let known: Table = "[server]\nlisten = ''".parse().unwrap();

        let error = check_key(&known, "server").unwrap_err();

        assert_eq!(error.to_string(), "`server` is a table of settings, not a setting");
    }
}
