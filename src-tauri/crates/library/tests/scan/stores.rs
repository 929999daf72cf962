//! How other programs keep models.

use crate::*;

const HASH: &str = "sha256-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn manifest(digest: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"layers":[
            {{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:00","size":1}},
            {{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":1}}]}}"#
    )
}

#[test]
fn an_ollama_model_is_listed_once_under_its_name() {
    let store = tempfile::tempdir().unwrap();
    put(store.path().join("blobs").join(HASH), model("M"));
    for tag in ["8b", "latest"] {
        put(
            store
                .path()
                .join("manifests/registry.ollama.ai/library/llama3")
                .join(tag),
            manifest(&HASH.replace('-', ":")),
        );
    }
    let scan = scanned(store.path());
    assert_eq!(labels(&scan), ["llama3:8b"]);
    assert_eq!(scan.notes, []);
    assert!(
        scan.items[0].path.ends_with(HASH),
        "and opens under its hash"
    );
}

#[test]
fn a_manifest_without_its_file_or_without_sense_is_a_note() {
    let store = tempfile::tempdir().unwrap();
    put(store.path().join("blobs").join(HASH), model("M"));
    let library = store.path().join("manifests/registry.ollama.ai/library");
    put(library.join("gone/latest"), manifest("sha256:ffff"));
    put(library.join("odd/latest"), "not JSON");
    put(
        library.join("out/latest"),
        manifest("sha256:../../../../etc/passwd"),
    );
    put(
        library.join("ours/latest"),
        manifest(&HASH.replace('-', ":")),
    );
    let scan = scanned(store.path());
    assert_eq!(labels(&scan), ["ours:latest"]);
    assert_eq!(scan.notes.len(), 2, "{:?}", scan.notes);
    assert!(
        matches!(&scan.notes[0], Note::BadManifest { manifest, .. } if manifest.ends_with("odd/latest"))
    );
    assert!(matches!(&scan.notes[1], Note::MissingBlob { name, .. } if name == "gone:latest"));
}

#[test]
fn owners_and_other_hosts_are_part_of_the_name() {
    let store = tempfile::tempdir().unwrap();
    for (number, at) in ["registry.ollama.ai/ada/tuned/v1", "hf.co/ada/x-GGUF/Q4_K_M"]
        .iter()
        .enumerate()
    {
        put(
            store.path().join(format!("blobs/sha256-{number}")),
            model("M"),
        );
        put(
            store.path().join("manifests").join(at),
            manifest(&format!("sha256:{number}")),
        );
    }
    assert_eq!(
        labels(&scanned(store.path())),
        ["ada/tuned:v1", "hf.co/ada/x-GGUF:Q4_K_M"]
    );
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn manifests_on_another_disk_still_name_their_models() {
        let (store, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(store.path().join("blobs").join(HASH), model("M"));
        put(
            elsewhere
                .path()
                .join("registry.ollama.ai/library/llama3/8b"),
            manifest(&HASH.replace('-', ":")),
        );
        symlink(elsewhere.path(), store.path().join("manifests")).unwrap();
        assert_eq!(labels(&scanned(store.path())), ["llama3:8b"]);
    }

    #[test]
    fn a_hugging_face_cache_lists_its_snapshots_and_not_its_blobs() {
        let cache = tempfile::tempdir().unwrap();
        let repo = cache.path().join("models--ada--x-GGUF");
        put(repo.join("blobs/aaaa"), model("M"));
        put(repo.join("blobs/bbbb.incomplete"), model("M"));
        for number in 1..=2 {
            put(repo.join(format!("blobs/cccc{number}")), part(number, 2));
        }
        for commit in ["c1", "c2"] {
            let snapshot = repo.join("snapshots").join(commit);
            fs::create_dir_all(&snapshot).unwrap();
            symlink("../../blobs/aaaa", snapshot.join("x-Q4_0.gguf")).unwrap();
        }
        // The first commit's set was fetched in part, the second's whole.
        for (commit, number) in [("c1", 1), ("c2", 1), ("c2", 2)] {
            let link = repo.join(format!(
                "snapshots/{commit}/x-Q8_0-0000{number}-of-00002.gguf"
            ));
            symlink(format!("../../blobs/cccc{number}"), link).unwrap();
        }
        symlink("../../blobs/gone", repo.join("snapshots/c1/lost.gguf")).unwrap();
        symlink("../../blobs/gone", repo.join("snapshots/c1/README.md")).unwrap();

        let scan = scanned(cache.path());
        assert_eq!(labels(&scan), ["x-Q4_0.gguf", "x-Q8_0.gguf"]);
        assert!(scan.items.iter().all(|item| item.hindrance().is_none()));
        assert_eq!(
            scan.notes,
            [Note::BrokenLinks {
                folder: cache.path().to_owned(),
                count: 1
            }],
            "of the links that lead nowhere those named like models are counted"
        );
    }

    #[test]
    fn copies_in_place_of_links_work_the_same() {
        let cache = tempfile::tempdir().unwrap();
        let repo = cache.path().join("models--ada--x-GGUF");
        fs::create_dir_all(repo.join("blobs")).unwrap();
        put(repo.join("snapshots/c1/x-Q4_0.gguf"), model("M"));
        assert_eq!(labels(&scanned(cache.path())), ["x-Q4_0.gguf"]);
    }

    #[test]
    fn a_folder_that_leads_back_up_ends_there() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path().join("a/m.gguf"), model("M"));
        symlink("..", folder.path().join("a/up")).unwrap();
        symlink("self", folder.path().join("self")).unwrap();
        symlink("loop.gguf", folder.path().join("loop.gguf")).unwrap();
        let scan = scanned(folder.path());
        assert_eq!(labels(&scan), ["m.gguf"]);
        assert_eq!(
            scan.notes,
            [Note::BrokenLinks {
                folder: folder.path().to_owned(),
                count: 1
            }]
        );
    }

    #[test]
    fn a_folder_under_many_names_is_looked_into_once_under_its_own_or_the_first() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(folder.path().join("own/m.gguf"), model("M"));
        symlink("own", folder.path().join("another")).unwrap();
        put(elsewhere.path().join("n.gguf"), model("N"));
        // Many, since a file system may list a few in order by chance.
        for number in (0..40).rev() {
            let link = folder.path().join(format!("link-{number:02}"));
            symlink(elsewhere.path(), link).unwrap();
        }
        let found = scanned(folder.path()).items;
        let paths: Vec<&Path> = found.iter().map(|item| item.path.as_path()).collect();
        assert_eq!(
            paths,
            [
                folder.path().join("link-00/n.gguf"),
                folder.path().join("own/m.gguf")
            ]
        );
    }

    #[test]
    fn a_file_under_two_names_is_listed_under_its_own() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path().join("own.gguf"), model("M"));
        symlink("own.gguf", folder.path().join("another.gguf")).unwrap();
        assert_eq!(labels(&scanned(folder.path())), ["own.gguf"]);
    }
}
