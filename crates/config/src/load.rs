//! Defaults, file, environment, flags: the later the stronger.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use crate::{
    DEFAULTS, Error, Origin, Result, Secret, Settings, Surroundings, layer, place,
    settings::Written, variable,
};

/// What the command line says. Keys as in the file.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The settings file; unlike the one at the usual place it must be there.
    pub file: Option<PathBuf>,
    values: Vec<(&'static str, Value)>,
}

impl Flags {
    /// Sets a key, if the flag was given.
    pub fn set(&mut self, key: &'static str, value: Option<impl Into<Value>>) -> &mut Self {
        self.values.extend(value.map(|value| (key, value.into())));
        self
    }
}

/// The settings, and where each came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub settings: Settings,
    /// Every key, its tables before it: what it is and what said so.
    pub origins: BTreeMap<String, (Value, Origin)>,
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
}

/// Reads the settings.
pub fn load(flags: &Flags, here: &Surroundings) -> Result<Loaded> {
    let defaults: Table = DEFAULTS.parse().map_err(|error| unreadable("the defaults", &error))?;
    let mut table = defaults.clone();
    let mut origins: BTreeMap<String, Origin> =
        layer::keys(&table).into_iter().map(|key| (key, Origin::Default)).collect();
    let mut lay = |key: &str, value: Value, origin: Origin| {
        layer::set(&mut table, key, value);
        origins.insert(key.to_owned(), origin);
    };

    let file = read(flags, here)?;
    if let Some((path, written)) = &file {
        for key in layer::keys(written) {
            layer::check_key(&defaults, &key).map_err(|error| within(path, &error))?;
            if let Some(value) = layer::value(written, &key) {
                lay(&key, value.clone(), Origin::File);
            }
        }
    }
    for setting in variable::SETTINGS {
        let Some(text) = here.get(setting.name) else { continue };
        let text =
            text.to_str().ok_or_else(|| Error::new(format!("{} is not text", setting.name)))?;
        let default = layer::value(&defaults, setting.key)
            .ok_or_else(|| Error::new(format!("{} stands for no setting", setting.name)))?;
        let value = layer::parse(default, text)
            .map_err(|error| Error::new(format!("{}: {error}", setting.name)))?;
        lay(setting.key, value, Origin::Environment(setting.name));
    }
    for (key, value) in &flags.values {
        layer::check_key(&defaults, key)?;
        lay(key, value.clone(), Origin::Flag);
    }

    let origins = origins
        .into_iter()
        .filter_map(|(key, origin)| {
            let value = layer::value(&table, &key)?.clone();
            Some((key, (value, origin)))
        })
        .collect();
    let written: Written = resolve(table)?;
    let settings = Settings::resolve(written, place::data(here), here)?;
    Ok(Loaded { settings, origins, file: file.map(|(path, _)| path) })
}

/// The settings file: the one that was named, or the one at the usual place if it is there.
fn read(flags: &Flags, here: &Surroundings) -> Result<Option<(PathBuf, Table)>> {
    let named = flags.file.clone().or_else(|| here.get(variable::CONFIG).map(PathBuf::from));
    let path = named.clone().unwrap_or_else(|| place::file(here));
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => {
            return Ok(None);
        }
        Err(error) => {
            return Err(Error::new(format!(
                "cannot read the settings {}: {error}",
                path.display()
            )));
        }
    };
    let table = text.parse().map_err(|error| unreadable(&path.display().to_string(), &error))?;
    Ok(Some((path, table)))
}

fn resolve(table: Table) -> Result<Written> {
    // One key at a time would name the key; serde's message names the value and what it should be.
    Value::Table(table).try_into().map_err(|error: toml::de::Error| {
        Error::new(error.message().to_owned()).hint(in_key(&error))
    })
}

fn in_key(error: &toml::de::Error) -> String {
    let text = error.to_string();
    match text.split_once("in `").and_then(|(_, rest)| rest.split_once('`')) {
        Some((key, _)) => format!("in the setting `{key}`"),
        None => "`atoll config default` shows every setting and its type".to_owned(),
    }
}

fn unreadable(what: &str, error: &toml::de::Error) -> Error {
    Error::new(format!("{what} is not TOML: {}", error.to_string().trim_end()))
}

fn within(path: &Path, error: &Error) -> Error {
    let named = Error::new(format!("{}: {error}", path.display()));
    match error.advice() {
        Some(advice) => named.hint(advice),
        None => named,
    }
}

/// Reads a secret from the variable that holds it, else from the file that does.
pub(crate) fn secret(
    variable: &str,
    file: Option<&Path>,
    here: &Surroundings,
) -> Result<Option<Secret>> {
    if let Some(text) = here.get(variable) {
        let text = text.to_str().ok_or_else(|| Error::new(format!("{variable} is not text")))?;
        return Ok(Some(Secret::new(text.trim())));
    }
    let Some(path) = file else { return Ok(None) };
    let text = fs::read_to_string(path)
        .map_err(|error| Error::new(format!("cannot read the key {}: {error}", path.display())))?;
    Ok(Some(Secret::new(text.trim())))
}

#[cfg(test)]
mod tests;
