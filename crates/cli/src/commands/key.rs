//! `atoll key`: who may use this server over the network.

use atoll_types::key::{CreateKey, Key, Scope};
use clap::{Args, Subcommand, ValueEnum};

use crate::{failure::Result, invocation::Invocation, words};

/// Make, list and remove API keys
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  atoll key create laptop
  atoll key ls")]
pub(crate) enum Command {
    Create(Create),
    Ls(List),
    Rm(Remove),
}

/// Make a key; it is shown this once
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  atoll key create laptop
  atoll key create dashboard --scope read
  export ATOLL_API_KEY=$(atoll key create ci --json | jq -r .key)")]
pub(crate) struct Create {
    /// What to call it
    #[arg(value_name = "NAME")]
    name: String,
    /// What its holder may do; read and run if not said
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<ScopeArgument>,
}

/// List keys, without their secrets
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll key ls")]
pub(crate) struct List {}

/// Remove keys: their holders are let in no more
#[derive(Debug, Args)]
#[command(after_help = "Example:
  atoll key rm KEY_ID")]
pub(crate) struct Remove {
    /// The keys' ids, as `atoll key ls` shows them
    #[arg(value_name = "KEY_ID", required = true)]
    keys: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeArgument {
    /// Look: sessions, files, metrics
    Read,
    /// Make sessions, run code, change files
    Run,
    /// Everything, keys too
    Admin,
}

pub(crate) async fn run(command: Command, invocation: &Invocation) -> Result<u8> {
    match command {
        Command::Create(arguments) => create(arguments, invocation).await?,
        Command::Ls(List {}) => list(invocation).await?,
        Command::Rm(arguments) => remove(&arguments, invocation).await?,
    }
    Ok(0)
}

async fn create(arguments: Create, invocation: &Invocation) -> Result {
    let scopes = arguments.scope.into_iter().map(|scope| match scope {
        ScopeArgument::Read => Scope::Read,
        ScopeArgument::Run => Scope::Run,
        ScopeArgument::Admin => Scope::Admin,
    });
    let scopes: Vec<_> = scopes.collect();
    let request =
        CreateKey { name: arguments.name, scopes: (!scopes.is_empty()).then_some(scopes) };
    let key = invocation.client().await?.create_key(&request).await?;
    invocation.printer.answer(&key, || {
        format!("{}\nkeep it: it is not shown again; its id is {}", key.key, key.about.id)
    })
}

async fn list(invocation: &Invocation) -> Result {
    let keys = invocation.client().await?.keys().await?;
    let printer = invocation.printer;
    printer.answer(&keys, || {
        if keys.is_empty() {
            return "no keys; make one with `atoll key create NAME`".to_owned();
        }
        printer.table(&["KEY_ID", "NAME", "SCOPES", "AGE"], keys.iter().map(row))
    })
}

fn row(key: &Key) -> [String; 4] {
    let scopes: Vec<_> = key.scopes.iter().map(words::of).collect();
    [key.id.clone(), words::printable(&key.name), scopes.join(","), words::since(key.created_at)]
}

async fn remove(arguments: &Remove, invocation: &Invocation) -> Result {
    let client = invocation.client().await?;
    for key in &arguments.keys {
        client.remove_key(key).await?;
    }
    invocation.printer.answer(&arguments.keys, || arguments.keys.join("\n"))
}
