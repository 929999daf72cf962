//! Readable names for the models that Ollama keeps under the hash of their content.
//!
//! A store has `blobs/sha256-<hash>` and, for each name, a manifest
//! `manifests/<host>/<owner>/<model>/<tag>`: JSON that lists the layers by digest, written
//! `sha256:<hash>` there.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::display::shown_name;
use crate::note::Note;

/// A model that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    /// As Ollama writes it: `llama3:8b`, `ada/tuned:latest`, `hf.co/ada/x-GGUF:Q4_K_M`.
    pub name: String,
    /// Its file.
    pub blob: PathBuf,
}

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: String,
}

/// The layers that are GGUF files. Templates, parameters and licences are layers too.
const GGUF_LAYERS: [(&str, &str); 3] = [
    ("application/vnd.ollama.image.model", ""),
    ("application/vnd.ollama.image.projector", " (projector)"),
    ("application/vnd.ollama.image.adapter", " (adapter)"),
];

/// Real ones have some hundred bytes.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// What the manifests of a store name, in order of their names, and what is wrong with others.
pub(crate) fn names(store: &Path) -> (Vec<Named>, Vec<Note>) {
    let mut named = Vec::new();
    let mut notes = Vec::new();
    for host in folders(&store.join("manifests")) {
        for owner in folders(&host) {
            for model in folders(&owner) {
                for manifest in entries(&model) {
                    match layers(&manifest) {
                        Ok(layers) => named.extend(files(store, &manifest, layers)),
                        Err(reason) => notes.push(Note::BadManifest { manifest, reason }),
                    }
                }
            }
        }
    }
    named.sort_by(|a, b| a.name.cmp(&b.name));
    let (there, gone): (Vec<_>, Vec<_>) = named.into_iter().partition(|n| n.blob.is_file());
    notes.extend(gone.into_iter().map(|n| Note::MissingBlob {
        name: n.name,
        blob: n.blob,
    }));
    (there, notes)
}

fn files(store: &Path, manifest: &Path, layers: Vec<Layer>) -> Vec<Named> {
    let name = name(manifest);
    layers
        .iter()
        .filter_map(|layer| {
            let (_, suffix) = GGUF_LAYERS.iter().find(|(t, _)| *t == layer.media_type)?;
            // Anything but plain hex could name a file elsewhere.
            let hash = layer.digest.strip_prefix("sha256:")?;
            let plain = !hash.is_empty() && hash.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| Named {
                name: format!("{name}{suffix}"),
                blob: store.join("blobs").join(format!("sha256-{hash}")),
            })
        })
        .collect()
}

fn layers(manifest: &Path) -> Result<Vec<Layer>, String> {
    let mut text = Vec::new();
    fs::File::open(manifest)
        .and_then(|file| file.take(LARGEST_MANIFEST).read_to_end(&mut text))
        .map_err(|e| e.to_string())?;
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|e| format!("it is no manifest ({e})"))?;
    Ok(manifest.layers)
}

/// The name that Ollama gives to the model of this manifest.
fn name(manifest: &Path) -> String {
    let mut up = manifest
        .ancestors()
        .map(|path| path.file_name().map(shown_name).unwrap_or_default());
    let mut next = || up.next().unwrap_or_default();
    let (tag, model, owner, host) = (next(), next(), next(), next());
    match (host.as_str(), owner.as_str()) {
        ("registry.ollama.ai", "library") => format!("{model}:{tag}"),
        ("registry.ollama.ai", _) => format!("{owner}/{model}:{tag}"),
        _ => format!("{host}/{owner}/{model}:{tag}"),
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let mut folders = entries(parent);
    folders.retain(|path| path.is_dir());
    folders
}

/// The entries of a folder in order of name; none where it cannot be read.
fn entries(parent: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| !n.as_encoded_bytes().starts_with(b"."))
        })
        .collect();
    entries.sort();
    entries
}
