//! How code of a language becomes a command.
//!
//! Short code goes on the command line, where it costs nothing; longer code goes into a file of
//! the sandbox. `stored` commands make both mean the same to the program.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Error, Result};

/// Code up to this long is passed on the command line.
pub(crate) const INLINE: usize = 16 << 10;

/// Languages by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Languages(BTreeMap<String, Language>);

/// One entry of the table; see `languages.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Language {
    #[serde(default)]
    pub aliases: Vec<String>,
    #[serde(default)]
    pub extensions: Vec<String>,
    pub source: String,
    pub inline: Option<Vec<String>>,
    pub stored: Option<Vec<String>>,
    pub run: Vec<String>,
    pub compile: Option<Vec<String>>,
    pub requires: Option<Requirement>,
}

/// A version of a program that must be there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub command: Vec<String>,
    pub version: String,
}

/// What to do to run code or a file, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// A file to write: its path and content.
    pub write: Option<(String, String)>,
    pub requires: Option<Requirement>,
    pub compile: Option<Vec<String>>,
    pub argv: Vec<String>,
}

impl Languages {
    pub(crate) fn built_in() -> Self {
        serde_saphyr::from_str(include_str!("languages.yaml")).expect("the table is tested")
    }

    /// This table with the entries of `others` added, or put in place of those of the same name.
    pub(crate) fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Language> {
        let wanted = name.to_ascii_lowercase();
        self.0
            .get(&wanted)
            .or_else(|| self.0.values().find(|language| language.aliases.contains(&wanted)))
            .ok_or_else(|| {
                Error::invalid(format!("`language`: `{name}` is not known here"))
                    .hint(format!("known: {}", self.names().join(", ")))
            })
    }

    /// The language of a file, by how its name ends.
    pub(crate) fn of_file(&self, path: &str) -> Result<&Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_owned());
        self.0
            .values()
            .find(|language| {
                extension.as_ref().is_some_and(|extension| language.extensions.contains(extension))
            })
            .ok_or_else(|| {
                Error::invalid(format!("`file`: the name `{name}` tells no language"))
                    .hint("say it in `language`, or run the file as a `command`")
            })
    }
}

impl Language {
    /// How to run `code`; `directory` is a private place of the sandbox for its files.
    pub(crate) fn code(&self, code: &str, directory: &str) -> Steps {
        if let (Some(inline), true) = (&self.inline, code.len() <= INLINE) {
            let argv = inline.iter().map(|word| word.replace("{code}", code)).collect();
            return Steps { argv, requires: self.requires.clone(), ..Steps::default() };
        }
        let file = format!("{directory}/{}", self.source);
        let run = self.stored.as_ref().unwrap_or(&self.run);
        let mut steps = self.steps(run, &file, directory);
        steps.write = Some((file, code.to_owned()));
        steps
    }

    /// How to run a file of the sandbox.
    pub(crate) fn file(&self, path: &str, directory: &str) -> Steps {
        // A name that begins with a dash is still a name.
        let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
        self.steps(&self.run, &path, directory)
    }

    fn steps(&self, run: &[String], file: &str, directory: &str) -> Steps {
        let output = format!("{directory}/program");
        let filled = |words: &[String]| {
            words
                .iter()
                .map(|word| match word.as_str() {
                    "{output}" => output.clone(),
                    word => word.replace("{file}", file),
                })
                .collect()
        };
        Steps {
            write: None,
            requires: self.requires.clone(),
            compile: self.compile.as_deref().map(filled),
            argv: filled(run),
        }
    }
}

impl Requirement {
    /// Whether what the command printed is a version that will do.
    pub(crate) fn is_met_by(&self, printed: &str) -> bool {
        numbers(printed) >= numbers(&self.version)
    }
}

/// `v22.6.0` as `[22, 6, 0]`.
fn numbers(text: &str) -> Vec<u32> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(digits.len());
    digits[..end].split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(language: &str, code: &str) -> Steps {
        Languages::built_in().find(language).unwrap().code(code, "/tmp/x")
    }

    #[test]
    fn the_table_of_commands() {
        let languages = Languages::built_in();
        let rows = languages.0.iter().map(|(name, language)| {
            let steps = language.code("CODE", "/d");
            format!("{name}: {} | {:?}", steps.argv.join(" "), steps.compile)
        });

        insta::assert_snapshot!(rows.collect::<Vec<_>>().join("\n"), @r#"
        bash: bash -c CODE bash | None
        c: /d/program | Some(["cc", "-O1", "-o", "/d/program", "/d/main.c", "-lm"])
        c++: /d/program | Some(["c++", "-O1", "-o", "/d/program", "/d/main.cpp"])
        go: go run /d/main.go | None
        java: java /d/Main.java | None
        javascript: node -e CODE -- | None
        perl: perl /d/main.pl | None
        python: python3 -c CODE | None
        r: Rscript /d/main.R | None
        ruby: ruby /d/main.rb | None
        rust: /d/program | Some(["rustc", "--edition=2021", "-o", "/d/program", "/d/main.rs"])
        sh: /bin/sh -c CODE sh | None
        typescript: node --experimental-strip-types --disable-warning=ExperimentalWarning /d/main.ts | None
        "#);
    }

    #[test]
    fn names_are_found_by_alias_and_whatever_the_case() {
        let languages = Languages::built_in();

        for (name, same) in
            [("Python3", "python"), ("JS", "javascript"), ("C++", "cpp"), ("R", "r")]
        {
            assert_eq!(languages.find(name).unwrap(), languages.find(same).unwrap());
        }
        assert!(languages.find("cobol").unwrap_err().message.contains("`cobol`"));
    }

    #[test]
    fn a_file_is_known_by_how_its_name_ends() {
        let languages = Languages::built_in();

        assert_eq!(languages.of_file("a/b.py").unwrap(), languages.find("python").unwrap());
        assert_eq!(languages.of_file("x.R").unwrap(), languages.find("r").unwrap());
        for path in ["py", "a.py/b", "x.unknown", ""] {
            assert!(languages.of_file(path).is_err(), "{path}");
        }
    }

    #[test]
    fn code_with_braces_is_left_alone() {
        let steps = steps("python", "print('{file} {output} {code}')");

        assert_eq!(steps.argv, ["python3", "-c", "print('{file} {output} {code}')"]);
    }

    #[test]
    fn long_code_is_written_to_a_file_and_never_on_the_command_line() {
        let code = "#".repeat(INLINE + 1);
        for language in Languages::built_in().names() {
            let steps = steps(&language, &code);

            assert!(steps.argv.iter().all(|word| word.len() < 200), "{language}");
            assert_eq!(steps.write.map(|(_, content)| content), Some(code.clone()), "{language}");
        }
    }

    #[test]
    fn a_file_named_like_an_option_is_still_a_file() {
        let languages = Languages::built_in();

        let steps = languages.find("python").unwrap().file("-c", "/d");

        assert_eq!(steps.argv, ["python3", "./-c"]);
    }

    #[test]
    fn versions_are_compared_by_number() {
        let needs = Requirement { command: vec![], version: "22.6".into() };

        for (printed, enough) in [
            ("v22.6.0\n", true),
            ("v22.10.1", true),
            ("v24.0.0", true),
            ("v20.20.2", false),
            ("v22.5.9", false),
            ("", false),
        ] {
            assert_eq!(needs.is_met_by(printed), enough, "{printed}");
        }
    }
}
