//! Scans of real folders, orderly and hostile.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use twospeed_gguf::{TensorType, Writer};
use twospeed_library::{Item, Limits, Note, Progress, Reading, Role, Scan, scan};

/// A small sound model.
fn model(name: &str) -> Vec<u8> {
    file(&[("general.name", name)], |_| {})
}

fn file(texts: &[(&str, &str)], more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    if !texts.iter().any(|(key, _)| *key == "general.architecture") {
        writer.set("general.architecture", "llama");
    }
    for (key, text) in texts {
        writer.set(*key, *text);
    }
    writer.set("llama.block_count", 1u32);
    more(&mut writer);
    writer
        .tensor("token_embd.weight", TensorType::F32, &[8, 4])
        .unwrap();
    writer
        .tensor("blk.0.attn_q.weight", TensorType::F32, &[8, 8])
        .unwrap();
    let mut out = Vec::new();
    writer
        .write(&mut out, |tensor, out| {
            out.write_all(&vec![0; tensor.bytes as usize])
        })
        .unwrap();
    out
}

/// Part `part` (from 1) of a set, with one tensor in it.
fn part(part: u16, parts: u16) -> Vec<u8> {
    let mut writer = Writer::new();
    if part == 1 {
        writer
            .set("general.architecture", "llama")
            .set("general.name", "Big");
        writer.set("llama.block_count", 1u32);
    }
    writer.set("split.no", part - 1).set("split.count", parts);
    writer.set("split.tensors.count", i32::from(parts));
    let name = format!("blk.0.part_{part}.weight");
    writer.tensor(&name, TensorType::F32, &[8, 8]).unwrap();
    let mut out = Vec::new();
    writer
        .write(&mut out, |tensor, out| {
            out.write_all(&vec![0; tensor.bytes as usize])
        })
        .unwrap();
    out
}

fn put(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn scanned(folder: &Path) -> Scan {
    scan(
        &[folder.to_owned()],
        Limits::default(),
        &[],
        &|| true,
        &mut |_| {},
    )
}

fn labels(scan: &Scan) -> Vec<&str> {
    scan.items.iter().map(|item| item.label.as_str()).collect()
}

#[test]
fn models_are_found_at_any_depth_and_in_order_of_path() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        "b.gguf",
        "a/deep/er/and/deeper/c.gguf",
        "a/a.GGUF",
        "z/y/x.gguf",
    ] {
        put(folder.path().join(path), model("M"));
    }
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["a.GGUF", "c.gguf", "b.gguf", "x.gguf"]);
    assert_eq!(scan.notes, []);
    assert!(scan.items.iter().all(|item| item.role() == Role::Model));
    assert!(scan.items.iter().all(|item| item.hindrance().is_none()));
}

#[test]
fn what_is_no_model_is_not_looked_at_and_downloads_are_none() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "m.gguf.part",
        "m.safetensors",
        "._m.gguf",
        "m.bin",
        "m.gguf.incomplete",
    ] {
        put(folder.path().join(name), model("M"));
    }
    put(
        folder.path().join("LICENSE"),
        "a text without an extension, longer than a header",
    );
    assert_eq!(labels(&scanned(folder.path())), [""; 0]);
}

#[test]
fn a_split_set_is_one_row_that_opens_with_its_first_part() {
    let folder = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        put(
            folder
                .path()
                .join(format!("big-0000{number}-of-00003.gguf")),
            part(number, 3),
        );
    }
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["big.gguf"]);
    let item = &scan.items[0];
    assert!(item.path.ends_with("big-00001-of-00003.gguf"));
    assert_eq!(item.files.len(), 3);
    let on_disk: u64 = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(item.bytes(), on_disk, "its size is that of all parts");
    assert_eq!(item.model().unwrap().tensors.len(), 3);
    assert_eq!(item.hindrance(), None);
}

#[test]
fn a_set_without_its_first_part_is_one_row_that_names_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    for number in 2..=3 {
        put(
            folder
                .path()
                .join(format!("big-0000{number}-of-00003.gguf")),
            part(number, 3),
        );
    }
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["big.gguf"]);
    let sentence = scan.items[0].hindrance().unwrap();
    assert!(sentence.contains("big-00001-of-00003.gguf"), "{sentence}");
}

#[test]
fn a_folder_that_is_called_like_a_part_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path().join("x-00001-of-00013/plain.gguf"),
        model("M"),
    );
    put(
        folder.path().join("x-00002-of-00013.gguf/plain.gguf"),
        model("M"),
    );
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["plain.gguf", "plain.gguf"]);
    assert!(scan.items.iter().all(|item| item.hindrance().is_none()));
}

#[test]
fn files_that_go_with_a_model_are_helpers() {
    let folder = tempfile::tempdir().unwrap();
    let texts: [(&str, &[(&str, &str)]); 3] = [
        (
            "mmproj.gguf",
            &[("general.architecture", "clip"), ("general.type", "mmproj")],
        ),
        ("imatrix.gguf", &[("general.type", "imatrix")]),
        (
            "lora.gguf",
            &[("general.type", "adapter"), ("adapter.type", "lora")],
        ),
    ];
    for (name, texts) in texts {
        put(folder.path().join(name), file(texts, |_| {}));
    }
    for item in scanned(folder.path()).items {
        assert_eq!(item.role(), Role::Helper, "{}", item.label);
        let sentence = item.hindrance().unwrap();
        assert!(sentence.contains(&item.label), "{sentence}");
    }
}

#[test]
fn a_broken_file_is_a_row_with_its_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let whole = model("M");
    put(folder.path().join("cut.gguf"), &whole[..whole.len() - 40]);
    put(folder.path().join("empty.gguf"), "");
    put(
        folder.path().join("page.gguf"),
        "<!DOCTYPE html><title>Maintenance</title>",
    );
    let scan = scanned(folder.path());
    assert_eq!(labels(&scan), ["cut.gguf", "empty.gguf", "page.gguf"]);
    let roles: Vec<Role> = scan.items.iter().map(Item::role).collect();
    assert_eq!(
        roles,
        [Role::Model, Role::Broken, Role::Broken],
        "a cut-off model is still known for what it is"
    );
    for item in &scan.items {
        let sentence = item.hindrance().unwrap();
        assert!(
            sentence.contains(&item.label) && sentence.ends_with('.'),
            "{sentence}"
        );
    }
}

#[test]
fn a_file_among_the_folders_is_read_and_a_missing_folder_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.gguf");
    put(&file, model("M"));
    let missing = folder.path().join("nowhere");
    let asked = [file.clone(), missing.clone(), folder.path().to_owned()];
    let scan = scan(&asked, Limits::default(), &[], &|| true, &mut |_| {});
    assert_eq!(labels(&scan), ["m.gguf"], "found twice, listed once");
    assert_eq!(scan.notes, [Note::Missing { folder: missing }]);
}

#[test]
fn a_file_that_was_asked_for_is_read_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let (model_file, text) = (folder.path().join("m.bin"), folder.path().join("t.txt"));
    put(&model_file, model("M"));
    put(&text, "a text");
    let asked = [model_file, text];
    let scan = scan(&asked, Limits::default(), &[], &|| true, &mut |_| {});
    assert_eq!(labels(&scan), ["m.bin", "t.txt"]);
    assert_eq!(scan.items[0].hindrance(), None);
    assert_eq!(scan.items[1].role(), Role::Broken);
}

#[test]
fn depth_and_number_have_bounds_that_are_told() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path().join("1/2/3/deep.gguf"), model("M"));
    put(folder.path().join("1/near.gguf"), model("M"));
    let limited = |limits| {
        let asked = [folder.path().to_owned()];
        scan(&asked, limits, &[], &|| true, &mut |_| {})
    };
    let shallow = limited(Limits {
        depth: 2,
        entries: 100,
    });
    assert_eq!(labels(&shallow), ["near.gguf"]);
    assert_eq!(
        shallow.notes,
        [Note::TooDeep {
            folder: folder.path().join("1/2/3"),
            limit: 2
        }]
    );
    let few = limited(Limits {
        depth: 9,
        entries: 1,
    });
    assert_eq!(
        few.notes,
        [Note::TooMany {
            folder: folder.path().join("1"),
            limit: 1
        }]
    );
}

#[test]
fn a_rescan_reads_only_what_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path().join("a.gguf"), model("A"));
    put(folder.path().join("b.gguf"), model("B"));
    let mut first = scanned(folder.path());
    // What was read is marked, to see whether it is used again.
    for item in &mut first.items {
        if let Reading::Read(model) = &mut item.reading {
            model.name = "from the last scan".into();
        }
    }
    put(folder.path().join("b.gguf"), model("A longer name"));
    let asked = [folder.path().to_owned()];
    let second = scan(
        &asked,
        Limits::default(),
        &first.items,
        &|| true,
        &mut |_| {},
    );
    let names: Vec<&str> = second
        .items
        .iter()
        .map(|i| i.model().unwrap().name.as_str())
        .collect();
    assert_eq!(names, ["from the last scan", "A longer name"]);
}

#[test]
fn each_item_is_told_as_it_comes_and_a_no_ends_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.gguf", "b.gguf", "c.gguf"] {
        put(folder.path().join(name), model("M"));
    }
    let found = std::cell::RefCell::new(Vec::new());
    let asked = [folder.path().to_owned()];
    let scan = scan(
        &asked,
        Limits::default(),
        &[],
        &|| found.borrow().len() < 2,
        &mut |progress| {
            if let Progress::Found { item, read, of } = progress {
                found.borrow_mut().push((item.label.clone(), read, of));
            }
        },
    );
    assert!(scan.stopped);
    assert_eq!(
        labels(&scan),
        ["a.gguf", "b.gguf"],
        "what was found by then is kept"
    );
    assert_eq!(
        found.into_inner(),
        [("a.gguf".to_owned(), 1, 3), ("b.gguf".to_owned(), 2, 3)]
    );
}

mod stores {
    //! How other programs keep models.

    use super::*;

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
}

mod hostile {
    //! Folders that mean harm.

    use super::*;

    /// Malformed files, each with one thing wrong, and sound ones that hold no model.
    fn malformed() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/gguf/hostile")
    }

    #[test]
    fn every_malformed_file_is_a_row_and_none_ends_the_scan() {
        let folder = malformed();
        let files = fs::read_dir(&folder)
            .unwrap()
            .filter(|e| {
                e.as_ref()
                    .unwrap()
                    .path()
                    .extension()
                    .is_some_and(|e| e == "gguf")
            })
            .count();
        assert!(files >= 25);
        let started = std::time::Instant::now();
        let scan = scanned(&folder);
        assert!(started.elapsed().as_secs_f64() < 0.1 * files as f64);
        assert_eq!(scan.items.len(), files);
        for item in &scan.items {
            assert_ne!(item.role(), Role::Model, "{} is no model", item.label);
            let sentence = item.hindrance().unwrap();
            assert!(
                !sentence.is_empty() && !sentence.contains('\n'),
                "{sentence}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_that_mean_harm_are_shown_harmless_and_open() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(250) + ".gguf";
        let names: [(&[u8], &str); 6] = [
            (b"\x1b[31mred\n.gguf", "␛[31mred␊.gguf"),
            (
                b"<img src=x onerror=alert(1)>.gguf",
                "<img src=x onerror=alert(1)>.gguf",
            ),
            (b"\xff\xfe.gguf", "\u{fffd}\u{fffd}.gguf"),
            (
                "a\u{202e}fugg.exe.gguf".as_bytes(),
                "a<U+202E>fugg.exe.gguf",
            ),
            (
                b"$(reboot) `id` ; -rf *.gguf",
                "$(reboot) `id` ; -rf *.gguf",
            ),
            (long.as_bytes(), &long),
        ];
        for (name, _) in names {
            put(folder.path().join(OsStr::from_bytes(name)), model("M"));
        }
        let scan = scanned(folder.path());
        let mut wanted: Vec<&str> = names.iter().map(|(_, shown)| *shown).collect();
        let mut seen = labels(&scan);
        wanted.sort_unstable();
        seen.sort_unstable();
        assert_eq!(seen, wanted);
        for item in &scan.items {
            assert_eq!(
                item.hindrance(),
                None,
                "{} opens under its real name",
                item.label
            );
            assert!(item.path.exists());
        }
    }

    #[cfg(unix)]
    #[test]
    fn pipes_sockets_and_sparse_giants_do_not_hold_it_up() {
        use std::os::unix::net::UnixListener;
        use std::process::Command;

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.gguf");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let _socket = UnixListener::bind(folder.path().join("socket.gguf")).unwrap();
        let giant = fs::File::create(folder.path().join("giant.gguf")).unwrap();
        giant.set_len(1 << 40).unwrap();
        let scan = scanned(folder.path());
        assert_eq!(labels(&scan), ["giant.gguf"], "what is no file is no model");
        assert_eq!(scan.items[0].role(), Role::Broken);
    }

    /// Root may read everything: then there is nothing to see here.
    #[cfg(unix)]
    #[test]
    fn a_folder_without_permission_is_a_note_and_the_others_are_listed() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        put(folder.path().join("closed/m.gguf"), model("M"));
        put(folder.path().join("open/m.gguf"), model("M"));
        let closed = folder.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let readable = fs::read_dir(&closed).is_ok();
        let scan = scanned(folder.path());
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        if readable {
            return;
        }
        assert_eq!(labels(&scan), ["m.gguf"]);
        assert_eq!(
            scan.notes,
            [Note::Unreadable {
                folder: closed,
                reason: "permission denied".into()
            }]
        );
    }
}
