//! The map in `ARCHITECTURE.md`, as absences: which crate must not know which.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What each crate of the workspace depends on, tests aside.
#[derive(Debug, Default)]
struct Graph(BTreeMap<String, Package>);

#[derive(Debug, Default)]
struct Package {
    /// Relative to the workspace.
    directory: PathBuf,
    dependencies: BTreeSet<String>,
}

/// What speaks HTTP.
const HTTP: [&str; 6] = ["axum", "hyper", "hyper-util", "tower", "tower-http", "reqwest"];
const SERVER: [&str; 4] = ["atoll-api", "atoll-service", "atoll-store", "atoll-engine"];
const STORAGE: [&str; 1] = ["sqlx"];

/// Clients of other programs: an engine may speak to one, and nobody else. Speaking HTTP by itself
/// is not among what an engine may do.
const REMOTE: [&str; 1] = ["bollard"];

/// What the wire types may be made of.
const PLAIN: [&str; 6] = ["serde", "serde_json", "jiff", "thiserror", "utoipa", "schemars"];

impl Graph {
    fn of_this_workspace() -> Self {
        let root = workspace();
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .current_dir(&root)
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
        let packages = metadata["packages"].as_array().expect("there are packages");
        Self(packages.iter().map(|package| Package::read(package, &root)).collect())
    }

    /// Everything a crate of the workspace leads to, through crates of the workspace.
    fn reach(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut ahead = vec![name];
        while let Some(name) = ahead.pop() {
            for dependency in self.0.get(name).into_iter().flat_map(|one| &one.dependencies) {
                if found.insert(dependency.as_str()) {
                    ahead.push(dependency);
                }
            }
        }
        found
    }

    fn below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a str> {
        let inside = move |package: &Package| package.directory.starts_with(directory);
        self.0.iter().filter(move |(_, one)| inside(one)).map(|(name, _)| name.as_str())
    }

    /// Every arrow that should not be there.
    fn violations(&self) -> Vec<String> {
        let engines: Vec<&str> = self.below("engines").collect();
        let mut found = Vec::new();
        let mut must_not = |from: &str, to: &[&str]| {
            let reached = self.reach(from);
            found.extend(
                to.iter().filter(|to| reached.contains(**to)).map(|to| format!("{from} -> {to}")),
            );
        };
        must_not("atoll-api", &engines);
        must_not("atoll-service", &engines);
        must_not("atoll-service", &HTTP);
        must_not("atoll-store", &HTTP);
        must_not("atoll-agent", &["atoll-engine", "atoll-service", "atoll-store", "atoll-types"]);
        must_not("atoll-agent", &HTTP);
        must_not("atoll-client", &SERVER);
        must_not("atoll-client", &engines);
        must_not("atoll-engine", &["atoll-agent-client", "atoll-agent-protocol"]);
        must_not("atoll-config", &SERVER);
        for others in
            SERVER.into_iter().chain(["atoll-agent", "atoll-agent-client", "atoll-client"])
        {
            must_not(others, &REMOTE);
        }
        for engine in &engines {
            must_not(engine, &["atoll-store", "atoll-service", "atoll-api", "atoll-config"]);
            must_not(engine, &HTTP);
            must_not(engine, &STORAGE);
        }
        let plain = self.0.get("atoll-types").into_iter().flat_map(|one| &one.dependencies);
        found.extend(
            plain
                .filter(|one| !PLAIN.contains(&one.as_str()))
                .map(|one| format!("atoll-types -> {one}")),
        );
        found.extend(self.who_else_names_an_engine(&engines));
        found
    }

    /// Only the program names engines; tests and benchmarks may.
    fn who_else_names_an_engine(&self, engines: &[&str]) -> Vec<String> {
        let is_free = |name: &str, package: &Package| {
            name == "atoll-cli"
                || engines.contains(&name)
                || package.directory.starts_with("tests")
                || package.directory.starts_with("bench")
        };
        self.0
            .iter()
            .filter(|(name, package)| !is_free(name, package))
            .flat_map(|(name, package)| package.dependencies.iter().map(move |to| (name, to)))
            .filter(|(_, to)| engines.contains(&to.as_str()))
            .map(|(name, to)| format!("{name} -> {to}"))
            .collect()
    }
}

impl Package {
    fn read(package: &Value, root: &Path) -> (String, Self) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let directory = manifest.parent().expect("it is in a directory");
        let dependencies = package["dependencies"].as_array().expect("a list");
        let shipped = dependencies.iter().filter(|one| one["kind"].as_str() != Some("dev"));
        let read = Self {
            directory: directory.strip_prefix(root).expect("in the workspace").to_owned(),
            dependencies: shipped.map(|one| text(&one["name"])).collect(),
        };
        (text(&package["name"]), read)
    }
}

fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the workspace is there")
}

#[test]
fn no_crate_knows_what_it_must_not() {
    let graph = Graph::of_this_workspace();

    assert_eq!(graph.violations(), Vec::<String>::new());
}

#[test]
fn every_crate_of_the_map_is_there() {
    let graph = Graph::of_this_workspace();

    let names: Vec<&str> = graph.0.keys().map(String::as_str).collect();
    for name in SERVER.into_iter().chain(["atoll-agent", "atoll-client", "atoll-cli"]) {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
    assert!(graph.below("engines").count() >= 2);
}

#[test]
fn every_engine_is_named_by_the_program() {
    let graph = Graph::of_this_workspace();
    let named = &graph.0["atoll-cli"].dependencies;

    // A helper program of an engine lies deeper than the engine.
    let engines =
        graph.below("engines").filter(|name| graph.0[*name].directory.components().count() == 2);
    for engine in engines {
        assert!(named.contains(engine), "atoll-cli does not name {engine}");
    }
}

#[test]
fn every_crate_is_held_to_the_workspace_lints() {
    for (name, package) in Graph::of_this_workspace().0 {
        let path = workspace().join(package.directory).join("Cargo.toml");
        let manifest: toml::Table =
            fs::read_to_string(path).expect("there is a manifest").parse().expect("it is TOML");
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(inherits, Some(&toml::Value::Boolean(true)), "{name}");
    }
}

#[test]
fn a_forbidden_arrow_is_seen() {
    let package = |directory: &str, dependencies: &[&str]| Package {
        directory: directory.into(),
        dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
    };
    let arrows = |packages: Vec<(&str, Package)>| {
        let named = packages.into_iter().map(|(name, package)| (name.to_owned(), package));
        Graph(named.collect()).violations()
    };

    // Directly, through another crate, and by naming an engine where none may be named.
    assert_eq!(
        arrows(vec![("atoll-service", package("crates/service", &["axum"]))]),
        ["atoll-service -> axum"]
    );
    assert_eq!(
        arrows(vec![
            ("atoll-x", package("engines/x", &["atoll-y"])),
            ("atoll-y", package("crates/y", &["atoll-store"])),
        ]),
        ["atoll-x -> atoll-store"]
    );
    assert_eq!(
        arrows(vec![
            ("atoll-x", package("engines/x", &[])),
            ("atoll-y", package("crates/y", &["atoll-x"])),
        ]),
        ["atoll-y -> atoll-x"]
    );
    assert_eq!(
        arrows(vec![("atoll-service", package("crates/service", &["bollard"]))]),
        ["atoll-service -> bollard"]
    );
    assert_eq!(arrows(vec![("atoll-x", package("engines/x", &["bollard"]))]), [""; 0]);
    assert_eq!(
        arrows(vec![("atoll-types", package("crates/types", &["serde", "tokio"]))]),
        ["atoll-types -> tokio"]
    );
    assert_eq!(arrows(vec![("atoll-cli", package("crates/cli", &["axum", "sqlx"]))]), [""; 0]);
}
