//! What sandboxes are made of: a few built-in descriptions, and the operator's own.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use atoll_engine::{Image, Isolation, Mount, Network, Root};
use atoll_types::{environment::EnvironmentInfo, limits::Limits, session::MountMode};
use serde::Deserialize;

use crate::{Code, Engines, Error, Result, languages::Languages, limits};

const BUILT_IN: [(&str, &str); 4] = [
    ("base", include_str!("../environments/base.yaml")),
    ("python", include_str!("../environments/python.yaml")),
    ("node", include_str!("../environments/node.yaml")),
    ("bash", include_str!("../environments/bash.yaml")),
];

/// Environments by name.
#[derive(Debug, Clone)]
pub(crate) struct Environments(BTreeMap<String, Arc<Environment>>);

/// A named description of a sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub name: String,
    pub engine: Option<String>,
    pub env: BTreeMap<String, String>,
    /// What its file says, completed by the server's defaults.
    pub limits: Limits,
    pub mounts: Vec<Mount>,
    pub language: String,
    pub languages: Languages,
    /// The OCI runtime, on engines that leave a choice.
    pub runtime: Option<String>,
    /// What its file says.
    asked: Limits,
    aliases: Vec<String>,
    description: String,
    network: Option<Network>,
    roots: BTreeMap<String, Root>,
}

/// An environment's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    description: String,
    #[serde(default)]
    aliases: Vec<String>,
    engine: Option<String>,
    runtime: Option<String>,
    roots: BTreeMap<String, DescribedRoot>,
    /// Directories of the host that `host` roots show besides the usual ones.
    #[serde(default)]
    also: Vec<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    mounts: Vec<DescribedMount>,
    network: Option<DescribedNetwork>,
    #[serde(default = "python")]
    language: String,
    #[serde(default)]
    languages: Languages,
}

/// What one engine's sandboxes start from.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum DescribedRoot {
    /// `host`, `venv`, the absolute path of a directory, or the name of an image.
    Named(String),
    Built(Built),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Built {
    /// The directory that holds the `Dockerfile`.
    dockerfile: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedMount {
    host: PathBuf,
    guest: PathBuf,
    #[serde(default)]
    mode: MountMode,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DescribedNetwork {
    Loopback,
    Host,
}

fn python() -> String {
    "python".to_owned()
}

impl Environments {
    /// The built-in environments and those of the operator's directory, which may replace them.
    /// What they leave open of their limits is taken from `defaults`.
    ///
    /// A file that is no environment is an error that names it: it is for the operator.
    pub(crate) fn load(directory: Option<&Path>, defaults: Limits) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (name, text) in BUILT_IN {
            all.insert(name.to_owned(), Arc::new(Environment::parse(name, text, defaults)?));
        }
        for path in directory.map(yaml_files).transpose()?.unwrap_or_default() {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
            all.insert(name.clone(), Arc::new(Environment::parse(&name, &text, defaults)?));
        }
        Ok(Self(all))
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Environment>> {
        let exact = self.0.get(name);
        let aliased = || self.0.values().find(|one| one.aliases.iter().any(|alias| alias == name));
        exact.or_else(aliased).ok_or_else(|| {
            let names: Vec<_> = self.0.keys().map(String::as_str).collect();
            Error::invalid(format!("`environment`: there is no `{name}`"))
                .hint(format!("there are: {}", names.join(", ")))
        })
    }

    /// The same; on an engine whose sandboxes start from images, a name that is no environment's is
    /// an image's, with all else as in `base`.
    pub(crate) fn find_or_image(&self, name: &str, engine: &str) -> Result<Arc<Environment>> {
        let engine = Engines::canonical(engine);
        match self.find(name) {
            Ok(found) => Ok(Arc::clone(found)),
            Err(_) if OF_IMAGES.contains(&engine) => {
                let root = Root::Image(Image::Reference(name.to_owned()));
                Ok(Arc::new(Environment {
                    name: name.to_owned(),
                    engine: Some(engine.to_owned()),
                    aliases: Vec::new(),
                    roots: BTreeMap::from([(engine.to_owned(), root)]),
                    ..Environment::clone(self.find("base")?)
                }))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn describe(&self) -> Vec<EnvironmentInfo> {
        self.0.values().map(|environment| environment.describe()).collect()
    }
}

impl Environment {
    /// The limits its file asks for, within the operator's: an engine that cannot hold one of them
    /// refuses, as if the client had asked.
    pub(crate) fn asked(&self, most: &Limits) -> Limits {
        limits::least(self.asked, most)
    }

    fn parse(name: &str, text: &str, defaults: Limits) -> Result<Self> {
        let wrong = |why: String| Error::invalid(format!("environment `{name}`: {why}"));
        let described: Described =
            serde_saphyr::from_str(text).map_err(|error| wrong(error.to_string()))?;
        limits::check(&described.limits, &Limits::default())
            .map_err(|error| wrong(error.message))?;
        let mut roots = BTreeMap::new();
        for (engine, root) in described.roots {
            let name = Engines::canonical(&engine);
            let root = parse_root(name, root, &described.also)
                .ok_or_else(|| wrong(format!("`roots.{engine}`: write {}", choice(name))))?;
            roots.insert(name.to_owned(), root);
        }
        if let Some(engine) = &described.engine
            && !roots.contains_key(Engines::canonical(engine))
        {
            return Err(wrong(format!("`roots` has none for its `engine`, `{engine}`")));
        }
        let mounts = described.mounts.into_iter().map(|mount| {
            let absolute = mount.host.is_absolute() && mount.guest.is_absolute();
            absolute.then_some(()).ok_or_else(|| wrong("`mounts` need absolute paths".into()))?;
            let writable = mount.mode == MountMode::Rw;
            // Engines follow no link. One that is not there is refused when it is needed.
            let host = fs::canonicalize(&mount.host).unwrap_or(mount.host);
            Ok(Mount { host, guest: mount.guest, writable })
        });
        let languages = Languages::built_in().with(described.languages);
        languages.find(&described.language).map_err(|error| wrong(error.message))?;
        Ok(Self {
            name: name.to_owned(),
            engine: described.engine,
            env: described.env,
            asked: described.limits,
            limits: described.limits.or(defaults),
            mounts: mounts.collect::<Result<_>>()?,
            language: described.language,
            languages,
            runtime: described.runtime,
            aliases: described.aliases,
            description: described.description,
            network: described.network.map(|network| match network {
                DescribedNetwork::Loopback => Network::Loopback,
                DescribedNetwork::Host => Network::Host,
            }),
            roots,
        })
    }

    /// What a sandbox of that engine starts from.
    pub(crate) fn root(&self, engine: &str) -> Result<Root> {
        self.roots.get(engine).cloned().ok_or_else(|| {
            let engines: Vec<_> = self.roots.keys().map(String::as_str).collect();
            let message = format!("environment `{}` has no root for engine `{engine}`", self.name);
            Error::new(Code::Unsupported, message)
                .hint(format!("it has one for: {}", engines.join(", ")))
        })
    }

    /// What a sandbox may reach. Where nothing is isolated, nothing else can be promised.
    pub(crate) fn network(&self, isolation: Isolation) -> Network {
        let unsaid = if isolation == Isolation::None { Network::Host } else { Network::Loopback };
        self.network.unwrap_or(unsaid)
    }

    fn describe(&self) -> EnvironmentInfo {
        EnvironmentInfo {
            name: self.name.clone(),
            aliases: self.aliases.clone(),
            description: self.description.clone(),
            engine: self.engine.clone(),
            engines: self.roots.keys().cloned().collect(),
            language: self.language.clone(),
            languages: self.languages.names(),
            limits: self.limits,
        }
    }
}

/// Engines whose sandboxes start from an image.
const OF_IMAGES: [&str; 1] = ["docker"];

fn parse_root(engine: &str, root: DescribedRoot, also: &[PathBuf]) -> Option<Root> {
    let images = OF_IMAGES.contains(&engine);
    match root {
        DescribedRoot::Named(name) if images => {
            let relative = !name.is_empty() && !name.starts_with('/');
            relative.then_some(Root::Image(Image::Reference(name)))
        }
        DescribedRoot::Built(Built { dockerfile }) => (images && dockerfile.is_absolute())
            .then_some(Root::Image(Image::Dockerfile(dockerfile))),
        DescribedRoot::Named(text) => match &*text {
            "host" => Some(Root::Host { also: also.to_vec() }),
            "venv" => Some(Root::Venv),
            path => Path::new(path).is_absolute().then(|| Root::Directory(path.into())),
        },
    }
}

/// What can be written for an engine's root.
fn choice(engine: &str) -> &'static str {
    if OF_IMAGES.contains(&engine) {
        "the name of an image, or `{dockerfile: DIRECTORY}` with an absolute path"
    } else {
        "`host`, `venv` or an absolute path"
    }
}

fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(directory, &error))?.path();
        if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::invalid(format!("environments: {} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Environment::parse("mine", text, limits::DEFAULTS).unwrap_err().message
    }

    #[test]
    fn the_built_in_ones_are_found_by_name_and_alias() {
        let all = Environments::load(None, limits::DEFAULTS).unwrap();

        for (name, found) in
            [("base", "base"), ("Python3", "python"), ("Node", "node"), ("bash", "bash")]
        {
            assert_eq!(all.find(name).unwrap().name, found);
        }
        let error = all.find("nope").unwrap_err();
        assert_eq!(error.message, "`environment`: there is no `nope`");
    }

    #[test]
    fn a_misspelled_key_is_an_error_that_names_it() {
        let message = problem("description: x\nroots: {local: host}\nlimit: {}\n");

        assert!(message.contains("mine") && message.contains("limit"), "{message}");
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        for (text, word) in [
            ("roots: {local: host}", "description"),
            ("description: x", "roots"),
            ("description: x\nroots: {local: somewhere}", "roots.local"),
            ("description: x\nroots: {local: {dockerfile: /srv}}", "roots.local"),
            ("description: x\nroots: {docker: {dockerfile: srv}}", "roots.docker"),
            ("description: x\nroots: {docker: /srv/root}", "roots.docker"),
            ("description: x\nroots: {local: host}\nengine: namespace", "namespace"),
            ("description: x\nroots: {local: host}\nlimits: {memory: 0}", "limits.memory"),
            ("description: x\nroots: {local: host}\nlimits: {memory: lots}", "lots"),
            ("description: x\nroots: {local: host}\nlanguage: cobol", "cobol"),
            ("description: x\nroots: {local: host}\nmounts: [{host: a, guest: /b}]", "mounts"),
            ("description: x\nroots: {local: host}\nnetwork: everything", "network"),
            ("description: x\nroots: {local: host}\nlanguages: {lua: {run: [lua]}}", "source"),
            ("just text", "mine"),
        ] {
            let message = problem(text);
            assert!(message.contains(word), "{text:?}: {message}");
        }
    }

    #[test]
    fn an_operator_adds_environments_languages_and_limits() {
        let place = tempfile::tempdir().unwrap();
        let text = "description: Lua\naliases: [moon]\nengine: local_shell\n\
                    roots: {local: /srv/lua}\nalso: [/opt/lua]\nlimits: {memory: 64m}\n\
                    language: lua\nlanguages:\n  lua: {source: main.lua, run: [lua, '{file}']}\n";
        fs::write(place.path().join("lua.yaml"), text).unwrap();
        fs::write(place.path().join("README.md"), "not one").unwrap();

        let all = Environments::load(Some(place.path()), limits::DEFAULTS).unwrap();
        let lua = all.find("moon").unwrap();

        assert_eq!(lua.root("local").unwrap(), Root::Directory("/srv/lua".into()));
        assert_eq!(lua.root("namespace").unwrap_err().code, Code::Unsupported);
        assert_eq!(lua.limits.memory, Some(atoll_types::quantity::Size(64 << 20)));
        assert_eq!(lua.limits.pids, limits::DEFAULTS.pids);
        assert!(lua.languages.find("lua").is_ok() && lua.languages.find("python").is_ok());
        assert_eq!(all.describe().len(), 5);
    }

    #[test]
    fn an_image_can_be_named_or_built() {
        let root = |docker: &str| {
            let text = format!("description: x\nruntime: runsc\nroots: {{docker: {docker}}}");
            let environment = Environment::parse("mine", &text, limits::DEFAULTS).unwrap();
            assert_eq!(environment.runtime.as_deref(), Some("runsc"));
            environment.root("docker").unwrap()
        };

        let named = Image::Reference("python:3.12-slim".to_owned());
        assert_eq!(root("python:3.12-slim"), Root::Image(named));
        let built = Image::Dockerfile("/srv/mine".into());
        assert_eq!(root("{dockerfile: /srv/mine}"), Root::Image(built));
    }

    #[test]
    fn where_there_are_images_an_unknown_name_is_one() {
        let all = Environments::load(None, limits::DEFAULTS).unwrap();

        let image = all.find_or_image("ruby:3.4", "docker").unwrap();

        let root = Root::Image(Image::Reference("ruby:3.4".to_owned()));
        assert_eq!(image.root("docker").unwrap(), root);
        assert_eq!(image.limits, all.find("base").unwrap().limits);
        assert_eq!(all.find_or_image("python", "docker").unwrap().name, "python");
        assert!(all.find_or_image("ruby:3.4", "namespace").is_err());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let nowhere = Some(Path::new("/nonexistent/environments"));

        assert!(Environments::load(nowhere, limits::DEFAULTS).is_err());
    }
}
