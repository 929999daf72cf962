//! Scans of real folders, orderly and hostile.

#![allow(clippy::unwrap_used, clippy::panic)]

mod hostile;
mod stores;

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
