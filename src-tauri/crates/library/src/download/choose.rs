//! Which of a repository's files are meant.

use std::path::Path;

use twospeed_gguf::SetName;

use super::address::{Wanted, is_safe_name};
use super::error::{DownloadError, quoted};
use super::listing::Entry;
use crate::display::size;
use crate::names;

/// A model of a repository: a file, or all parts of a split set in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Its name: the file's, or what a set's parts have in common, with `.gguf`.
    pub name: String,
    /// The quantization in its name.
    pub quantization: Option<String>,
    pub(super) entries: Vec<Entry>,
    /// Goes with a model: a projector, an importance matrix.
    is_helper: bool,
    /// Parts that a set should have.
    parts: u32,
}

impl Choice {
    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| entry.size)
            .fold(0, u64::saturating_add)
    }

    /// Files it consists of.
    #[must_use]
    pub fn files(&self) -> usize {
        self.entries.len()
    }

    fn has(&self, file: &str) -> bool {
        self.name.eq_ignore_ascii_case(file)
            || self
                .entries
                .iter()
                .any(|entry| entry.name().eq_ignore_ascii_case(file))
    }
}

/// The models among a repository's files.
///
/// Errors: none there, or none whose name can be used.
pub(super) fn choices(repo: &str, entries: Vec<Entry>) -> Result<Vec<Choice>, DownloadError> {
    let mut choices: Vec<Choice> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut hostile = None;
    for entry in entries {
        if !entry.path.to_ascii_lowercase().ends_with(".gguf") {
            continue;
        }
        if !entry.path.split('/').all(is_safe_name) {
            hostile = Some(quoted(&entry.path));
            continue;
        }
        let set = SetName::of(Path::new(&entry.path));
        let key = match &set {
            Some(set) => set.path(1).to_string_lossy().into_owned(),
            None => entry.path.clone(),
        };
        match keys.iter().position(|other| *other == key) {
            Some(at) => choices[at].entries.push(entry),
            None => {
                keys.push(key);
                choices.push(choice(entry, set));
            }
        }
    }
    for choice in &mut choices {
        choice.entries.sort_by(|a, b| a.path.cmp(&b.path));
    }
    match (choices.is_empty(), hostile) {
        (false, _) => Ok(choices),
        (true, Some(name)) => Err(DownloadError::HostileName {
            repo: repo.to_owned(),
            name,
        }),
        (true, None) => Err(DownloadError::NoGguf(repo.to_owned())),
    }
}

fn choice(entry: Entry, set: Option<SetName>) -> Choice {
    let file = entry.name();
    let stem = match &set {
        Some(set) => set.stem(),
        None => file[..file.len() - ".gguf".len()].to_owned(),
    };
    let small = stem.to_ascii_lowercase();
    Choice {
        name: format!("{stem}.gguf"),
        quantization: names::quantization_of(&stem).map(str::to_ascii_uppercase),
        is_helper: small.contains("mmproj") || small.contains("imatrix"),
        parts: set.map_or(1, |set| set.parts),
        entries: vec![entry],
    }
}

/// The one that is meant.
///
/// Errors: none or several of that name, a set with missing parts.
pub(super) fn choose(wanted: &Wanted, choices: Vec<Choice>) -> Result<Choice, DownloadError> {
    let repo = &wanted.repo;
    let models = || choices.iter().filter(|choice| !choice.is_helper);
    let found: Vec<&Choice> = match &wanted.file {
        None => models().collect(),
        Some(file) => match choices.iter().filter(|choice| choice.has(file)).collect() {
            found @ Vec::<&Choice> { .. } if !found.is_empty() => found,
            _ => models()
                .filter(|choice| {
                    let label = choice.quantization.as_deref();
                    label.is_some_and(|label| label.eq_ignore_ascii_case(file))
                })
                .collect(),
        },
    };
    let choice = match found[..] {
        [only] => only.clone(),
        [] => {
            return Err(DownloadError::NoSuchFile {
                repo: repo.clone(),
                wanted: wanted.file.clone().unwrap_or_else(|| "model".to_owned()),
                models: list(choices.iter()),
            });
        }
        _ => {
            let first = found[0];
            return Err(DownloadError::Several {
                repo: repo.clone(),
                count: found.len(),
                models: list(found.iter().copied()),
                example: match (&wanted.file, &first.quantization) {
                    (None, Some(label)) => label.clone(),
                    _ => first.name.clone(),
                },
            });
        }
    };
    if choice.entries.len() as u64 != u64::from(choice.parts) {
        return Err(DownloadError::SetIncomplete {
            repo: repo.clone(),
            name: choice.name,
            found: choice.entries.len(),
            parts: choice.parts,
        });
    }
    Ok(choice)
}

/// Names with sizes, for a sentence.
fn list<'a>(choices: impl Iterator<Item = &'a Choice>) -> String {
    const MOST: usize = 40;
    let mut names: Vec<_> = choices
        .map(|choice| format!("{} ({})", choice.name, size(choice.bytes())))
        .collect();
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(paths: &[&str]) -> Result<Vec<Choice>, DownloadError> {
        let entries = paths.iter().map(|path| Entry {
            path: (*path).to_owned(),
            size: 1_000_000,
            sha256: None,
        });
        choices("a/b", entries.collect())
    }

    fn chosen(paths: &[&str], file: Option<&str>) -> Result<Choice, DownloadError> {
        let wanted = Wanted {
            repo: "a/b".into(),
            file: file.map(str::to_owned),
        };
        choose(&wanted, repo(paths)?)
    }

    const USUAL: [&str; 5] = [
        "README.md",
        "m-Q4_K_M.gguf",
        "m-Q8_0.gguf",
        "big/m-BF16-00002-of-00002.gguf",
        "big/m-BF16-00001-of-00002.gguf",
    ];

    #[test]
    fn a_file_is_found_by_its_name_or_its_quantization() {
        assert_eq!(
            chosen(&USUAL, Some("m-Q8_0.gguf")).unwrap().name,
            "m-Q8_0.gguf"
        );
        assert_eq!(
            chosen(&USUAL, Some("q4_k_m")).unwrap().name,
            "m-Q4_K_M.gguf"
        );
        let error = chosen(&USUAL, Some("Q6_K")).unwrap_err().to_string();
        assert!(
            error.starts_with("a/b has no Q6_K. It has m-Q4_K_M.gguf (1"),
            "{error}"
        );
    }

    #[test]
    fn of_a_split_set_every_part_is_fetched_in_order() {
        for file in ["BF16", "m-BF16-00002-of-00002.gguf", "m-BF16.gguf"] {
            let set = chosen(&USUAL, Some(file)).unwrap();
            let names: Vec<_> = set.entries.iter().map(Entry::name).collect();
            assert_eq!(
                names,
                ["m-BF16-00001-of-00002.gguf", "m-BF16-00002-of-00002.gguf"]
            );
        }
        let error = chosen(&["m-00001-of-00003.gguf"], None).unwrap_err();
        assert!(matches!(
            error,
            DownloadError::SetIncomplete {
                found: 1,
                parts: 3,
                ..
            }
        ));
    }

    #[test]
    fn without_a_name_the_only_model_is_meant_and_of_several_none() {
        let only = ["m.gguf", "mmproj-m-f16.gguf"];
        assert_eq!(chosen(&only, None).unwrap().name, "m.gguf");
        let error = chosen(&USUAL, None).unwrap_err();
        assert!(error.is_usage());
        let sentence = error.to_string();
        assert!(
            sentence.starts_with("a/b has 3 models: m-Q4_K_M.gguf"),
            "{sentence}"
        );
        assert!(
            sentence.ends_with("twospeed download a/b:Q4_K_M"),
            "{sentence}"
        );
    }

    #[test]
    fn hostile_names_are_passed_over_and_named_when_there_is_nothing_else() {
        for path in [
            "../../evil.gguf",
            "/etc/evil.gguf",
            r"..\evil.gguf",
            "a/../../e.gguf",
        ] {
            let error = repo(&[path]).unwrap_err();
            assert!(matches!(error, DownloadError::HostileName { .. }), "{path}");
            assert_eq!(repo(&[path, "m.gguf"]).unwrap().len(), 1, "{path}");
        }
        assert!(matches!(
            repo(&["x.safetensors"]).unwrap_err(),
            DownloadError::NoGguf(_)
        ));
    }
}
