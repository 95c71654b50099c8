//! What every command has at hand: its settings, its way to speak, its way to a server.

use std::path::PathBuf;

use atoll_client::{Client, Trust};
use atoll_config::{Flags, Loaded, Settings, Surroundings};

use crate::{
    arguments::Globals,
    failure::{Doing as _, Failure, Result},
    printer::Printer,
    server::{self, Place, Record},
    words,
};

/// One call of `atoll`.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) printer: Printer,
    pub(crate) loaded: Loaded,
    pub(crate) surroundings: Surroundings,
    /// The settings file, whatever named it: a server is started elsewhere, with fewer variables.
    config: Option<PathBuf>,
}

impl Invocation {
    /// Reads the settings. `more` adds the flags of one command to those of all.
    pub(crate) fn new(
        globals: &Globals,
        surroundings: Surroundings,
        more: impl FnOnce(&mut Flags) -> Result,
    ) -> Result<Self> {
        let printer = Printer::new(globals, &surroundings);
        let mut flags = Flags::default();
        flags.file = globals.config.as_ref().map(absolute).transpose()?;
        flags.set("data_dir", globals.data_dir.as_ref().map(text).transpose()?);
        flags.set("client.server", globals.server.clone());
        more(&mut flags)?;
        let loaded = atoll_config::load(&flags, &surroundings)?;
        let config = loaded.file.as_ref().map(absolute).transpose()?;
        Ok(Self { printer, loaded, surroundings, config })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    /// Where the private server of these settings is.
    pub(crate) fn place(&self) -> Place {
        Place::new(&self.settings().data_dir)
    }

    /// The server the settings name.
    pub(crate) fn remote(&self) -> Result<Option<Client>> {
        let settings = &self.settings().client;
        let Some(url) = &settings.server else { return Ok(None) };
        let Some(key) = &settings.api_key else {
            return Err(Failure::new(format!("there is no API key for {url}")).hint(
                "set ATOLL_API_KEY to one that `atoll key create NAME` gave on that machine",
            ));
        };
        let trust = match &settings.ca_file {
            Some(path) => {
                let pem =
                    std::fs::read(path).doing(|| format!("cannot read {}", path.display()))?;
                Trust::Pem(pem)
            }
            None => Trust::System,
        };
        Ok(Some(Client::tcp(url, key.reveal(), &trust)?))
    }

    /// The server the settings name, or the private one, started if it does not run.
    pub(crate) async fn client(&self) -> Result<Client> {
        if let Some(client) = self.remote()? {
            return Ok(client);
        }
        let (place, config) = (self.place(), self.config.as_deref());
        let socket = server::find_or_start(&place, config, &self.surroundings).await?;
        if Record::read(&place).is_some_and(|record| record.differs(&self.loaded)) {
            self.printer.note("the running server has other settings");
            self.printer
                .hint("`atoll daemon stop --keep` lets the next command start one with these");
        }
        Ok(Client::unix(socket))
    }

    /// Like [`Self::client`], but none where no server has ever been: looking makes nothing.
    pub(crate) async fn client_if_used(&self) -> Result<Option<Client>> {
        if self.remote()?.is_none() && !self.place().used()? {
            return Ok(None);
        }
        self.client().await.map(Some)
    }
}

/// A path of the command line as a setting, which may not be relative.
pub(crate) fn text(path: &PathBuf) -> Result<String> {
    let absolute = absolute(path)?;
    absolute
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::usage(format!("{}: the name is not UTF-8", path.display())))
}

fn absolute(path: &PathBuf) -> Result<PathBuf> {
    std::path::absolute(path).doing(|| format!("cannot tell where {} is", path.display()))
}

impl From<atoll_client::Error> for Failure {
    fn from(error: atoll_client::Error) -> Self {
        let code = match error.code() {
            Some("interpreter_missing" | "program_missing") => crate::failure::NOT_THERE,
            _ => crate::failure::OURS,
        };
        let hint = match &error {
            atoll_client::Error::Refused(refused) => refused.hint.as_deref().map(words::advice),
            atoll_client::Error::Unreachable { .. } => {
                Some("is it running? `atoll daemon status` tells of the private one".to_owned())
            }
            atoll_client::Error::Broken(_) => {
                Some("the server's log may say why; `atoll daemon status` names it".to_owned())
            }
            _ => None,
        };
        let message = match &error {
            atoll_client::Error::Refused(refused) => words::flags(&refused.message),
            _ => error.to_string(),
        };
        let kind = error.code().map(ToOwned::to_owned);
        Self { message, hint, code, kind }
    }
}
