//! Where other programs keep models.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders in which llama.cpp, LM Studio, Ollama and the Hugging Face tools keep models, as
/// far as they are there.
///
/// `variable` reads an environment variable: each program lets the person move its folder.
pub fn known_places(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut places = candidates(home, variable);
    places.retain(|place| place.is_dir());
    places
}

fn candidates(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let from = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dot_cache = home.join(".cache");
    let cache = from("XDG_CACHE_HOME").unwrap_or_else(|| dot_cache.clone());
    let caches_of_the_system = if cfg!(target_os = "macos") {
        home.join("Library").join("Caches")
    } else if cfg!(windows) {
        from("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData").join("Local"))
    } else {
        cache.clone()
    };

    let mut places = vec![
        from("LLAMA_CACHE").unwrap_or_else(|| caches_of_the_system.join("llama.cpp")),
        from("HF_HUB_CACHE")
            .or_else(|| from("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| from("HF_HOME").map(|folder| folder.join("hub")))
            .unwrap_or_else(|| cache.join("huggingface").join("hub")),
        // LM Studio moved from the second folder to the first and left the files behind.
        home.join(".lmstudio").join("models"),
        dot_cache.join("lm-studio").join("models"),
        from("OLLAMA_MODELS").unwrap_or_else(|| home.join(".ollama").join("models")),
    ];
    if cfg!(target_os = "linux") {
        // Ollama as a service has a user of its own.
        places.push(PathBuf::from("/usr/share/ollama/.ollama/models"));
    }
    places
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn both_of_lm_studios_folders_are_looked_for_and_an_absent_one_is_no_news() {
        let home = tempfile::tempdir().unwrap();
        let ours = |places: Vec<PathBuf>| -> Vec<PathBuf> {
            let ours = places.into_iter().filter(|p| p.starts_with(home.path()));
            ours.collect()
        };
        assert!(ours(known_places(home.path(), |_| None)).is_empty());

        let folders = [".lmstudio/models", ".cache/lm-studio/models"].map(|f| home.path().join(f));
        for folder in &folders {
            fs::create_dir_all(folder).unwrap();
        }
        assert_eq!(ours(known_places(home.path(), |_| None)), folders);
    }

    #[test]
    fn a_folder_that_the_person_moved_is_looked_for_where_it_is_now() {
        let places = candidates(Path::new("/home/ada"), |name| match name {
            "OLLAMA_MODELS" => Some("/big/ollama".into()),
            "HF_HOME" => Some("/big/hf".into()),
            "LLAMA_CACHE" => Some("".into()),
            _ => None,
        });
        assert!(places.contains(&PathBuf::from("/big/ollama")));
        assert!(places.contains(&PathBuf::from("/big/hf/hub")));
        assert!(
            !places.contains(&PathBuf::new()),
            "an empty variable is an unset one"
        );
    }
}
