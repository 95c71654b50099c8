//! API keys: `atoll_<id>_<secret><checksum>`.
//!
//! The id finds the record; the secret (160 random bits) is stored as a hash and compared in
//! constant time; the checksum lets scanners and typing errors be told from real keys without a
//! look at the store.

use atoll_store::KeyRecord;
use atoll_types::key::{CreateKey, Key, NewKey, Scope};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::{Error, Result, Service, clock, id};

const PREFIX: &str = "atoll_";
const ID: usize = 12;
/// Five bits each.
const SECRET: usize = 32;
const CHECKSUM: usize = 6;

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub key_id: String,
    pub scopes: Vec<Scope>,
}

impl Service {
    /// Makes a key. Its text is in the answer and nowhere else.
    ///
    /// Without scopes it may read and run.
    pub async fn create_key(&self, request: CreateKey) -> Result<NewKey> {
        let name = request.name.trim();
        if name.is_empty() || name.len() > 100 || name.contains(char::is_control) {
            return Err(Error::invalid("`name` must be 1 to 100 printable characters"));
        }
        let mut scopes = request.scopes.unwrap_or_else(|| vec![Scope::Read, Scope::Run]);
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            return Err(Error::invalid("`scopes` must not be empty"));
        }
        let (key, key_id, secret) = generate();
        let record = KeyRecord {
            id: key_id,
            name: name.to_owned(),
            hash: hash(&secret),
            scopes,
            created: clock::now(),
        };
        self.inner.store.insert_key(&record).await.map_err(|error| match error.kind() {
            atoll_store::ErrorKind::AlreadyExists => {
                Error::new(crate::Code::Conflict, format!("there is a key named `{name}`"))
            }
            _ => error.into(),
        })?;
        Ok(NewKey { key, about: show(record) })
    }

    /// Lists the keys, oldest first, without their secrets.
    pub async fn keys(&self) -> Result<Vec<Key>> {
        Ok(self.inner.store.keys().await?.into_iter().map(show).collect())
    }

    /// Removes the key of that id or name; it is refused from now on.
    pub async fn remove_key(&self, id_or_name: &str) -> Result<()> {
        if self.inner.store.remove_key(id_or_name).await? {
            return Ok(());
        }
        Err(Error::not_found(format!("there is no key `{id_or_name}`")))
    }

    /// Says whose key this is, if it is one.
    pub async fn authenticate(&self, key: &str) -> Result<Option<Identity>> {
        let Some((key_id, secret)) = parse(key) else { return Ok(None) };
        let record = self.inner.store.key(key_id).await?;
        let hash = hash(secret);
        // The same work whether or not there is such an id.
        let expected = record.as_ref().map_or_else(|| vec![0; hash.len()], |key| key.hash.clone());
        let same = bool::from(hash.ct_eq(&expected));
        Ok(record.filter(|_| same).map(|key| Identity { key_id: key.id, scopes: key.scopes }))
    }
}

/// A new key, its id and its secret.
fn generate() -> (String, String, String) {
    let (key_id, secret) = (id::random(ID), id::random(SECRET));
    let body = format!("{PREFIX}{key_id}_{secret}");
    (format!("{body}{}", checksum(&body)), key_id, secret)
}

/// The id and secret of a text that has the form of a key.
fn parse(key: &str) -> Option<(&str, &str)> {
    if !key.is_ascii() || key.len() != PREFIX.len() + ID + 1 + SECRET + CHECKSUM {
        return None;
    }
    let (body, sum) = key.split_at(key.len() - CHECKSUM);
    if sum != checksum(body) {
        return None;
    }
    body.strip_prefix(PREFIX)?.split_once('_').filter(|(id, _)| id.len() == ID)
}

fn checksum(body: &str) -> String {
    id::encode(&Sha256::digest(body)[..CHECKSUM])
}

fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret).to_vec()
}

fn show(record: KeyRecord) -> Key {
    let KeyRecord { id, name, scopes, created, .. } = record;
    Key { id, name, scopes, created_at: created }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_apart_as_it_was_put_together() {
        let (key, id, secret) = generate();

        assert!(key.starts_with("atoll_"));
        assert_eq!(parse(&key), Some((id.as_str(), secret.as_str())));
        assert!(secret.len() * 5 >= 160);
    }

    #[test]
    fn no_two_keys_are_alike() {
        assert_ne!(generate().0, generate().0);
    }

    #[test]
    fn a_key_with_any_letter_changed_has_no_form() {
        let (key, ..) = generate();
        for at in 0..key.len() {
            let mut wrong = key.clone().into_bytes();
            wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
            assert_eq!(parse(&String::from_utf8(wrong).unwrap()), None, "at {at}");
        }
    }

    #[test]
    fn what_is_no_key_has_no_form() {
        let (key, ..) = generate();
        for text in ["", "atoll_", "ä", &key[1..], &key[..key.len() - 1], &format!("{key}0")] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
