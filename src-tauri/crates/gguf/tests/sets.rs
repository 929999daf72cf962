//! Models that are split over several files.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests are not seen as tests

mod support;

use std::path::{Path, PathBuf};

use support::{file, fixtures, is_one_sentence};
use tempfile::TempDir;
use twospeed_gguf::{Data, Error, Kind, TensorType, Warning, Writer, fingerprint, read};

/// Writes a set of three: the first part has the keys and no tensors, the others a tensor each.
/// `change` may change a part (from 0) before it is written.
fn set(change: impl Fn(u16, &mut Writer)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3u16 {
        let mut writer = Writer::new();
        writer
            .set("split.no", number)
            .set("split.count", 3u16)
            .set("split.tensors.count", 2i32);
        if number == 0 {
            writer
                .set("general.architecture", "llama")
                .set("llama.block_count", 2u32);
        } else {
            let name = format!("blk.{}.attn_q.weight", number - 1);
            writer.tensor(&name, TensorType::F16, &[64, 64]).unwrap();
        }
        change(number, &mut writer);
        std::fs::write(part(folder.path(), number + 1), file(&writer)).unwrap();
    }
    folder
}

fn part(folder: &Path, number: u16) -> PathBuf {
    folder.join(format!("big-F16-{number:05}-of-00003.gguf"))
}

#[test]
fn any_part_opens_the_whole_set() {
    let folder = set(|_, _| {});
    let bytes: u64 = (1..=3)
        .map(|n| part(folder.path(), n).metadata().unwrap().len())
        .sum();
    for number in 1..=3 {
        let model = read(&part(folder.path(), number)).unwrap();
        assert_eq!(
            model.kind,
            Kind::Generates,
            "part {number}: the first part has the architecture"
        );
        assert_eq!(model.name, "big-F16");
        assert_eq!(model.path, part(folder.path(), 1));
        assert_eq!(model.file_bytes, bytes);
        assert_eq!(model.parameters, 2 * 64 * 64);
        assert_eq!(model.data, Data::Complete);
        assert_eq!(model.warnings, []);
        assert_eq!(
            model
                .tensors
                .iter()
                .map(|tensor| tensor.part)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        let split = model.split.as_ref().unwrap();
        assert_eq!(
            (split.part, split.parts, split.missing.len()),
            (number.into(), 3, 0)
        );
        model.check_decodes().unwrap();
    }
}

#[test]
fn a_missing_part_is_listed_by_its_name() {
    let folder = set(|_, _| {});
    std::fs::remove_file(part(folder.path(), 3)).unwrap();
    let model = read(&part(folder.path(), 2)).unwrap();
    assert_eq!(model.kind, Kind::Generates);
    assert_eq!(model.data, Data::Truncated);
    assert_eq!(
        model.split.as_ref().unwrap().missing,
        ["big-F16-00003-of-00003.gguf"]
    );
    assert!(
        matches!(model.warnings[..], [Warning::PartsMissing { .. }]),
        "not also incomplete"
    );
    let error = model.check().unwrap_err();
    assert!(matches!(error, Error::PartsMissing { .. }));
    let sentence = error.to_string();
    assert!(
        is_one_sentence(&sentence) && sentence.contains("big-F16-00003-of-00003.gguf"),
        "{sentence}"
    );
}

#[test]
fn without_its_first_part_a_set_is_read_as_far_as_it_goes() {
    let folder = set(|_, _| {});
    std::fs::remove_file(part(folder.path(), 1)).unwrap();
    let model = read(&part(folder.path(), 3)).unwrap();
    assert_eq!(
        model.split.as_ref().unwrap().missing,
        ["big-F16-00001-of-00003.gguf"]
    );
    assert_eq!(model.architecture, None, "no part that is there says it");
    assert_eq!(model.parameters, 2 * 64 * 64);
    assert!(model.check_loads().is_err());
}

#[test]
fn a_part_cut_short_makes_the_set_truncated() {
    let folder = set(|_, _| {});
    let last = std::fs::read(part(folder.path(), 3)).unwrap();
    std::fs::write(part(folder.path(), 3), &last[..last.len() - 10]).unwrap();
    let model = read(&part(folder.path(), 1)).unwrap();
    assert_eq!(model.data, Data::Truncated);
    assert_eq!(model.bytes_expected - model.bytes_found, 10);
}

#[test]
fn a_part_under_the_name_of_another_is_found_out() {
    let folder = set(|number, writer| {
        if number == 1 {
            writer.set("split.no", 2u16);
        }
    });
    let sentence = read(&part(folder.path(), 1)).unwrap_err().to_string();
    assert!(is_one_sentence(&sentence), "{sentence}");
    assert!(
        sentence.contains("is named part 2 of 3 of its set, but its header says part 3 of 3"),
        "{sentence}"
    );
}

#[test]
fn parts_of_different_downloads_do_not_add_up() {
    let folder = set(|number, writer| {
        if number == 2 {
            writer.tensor("another", TensorType::F16, &[64]).unwrap();
        }
    });
    let sentence = read(&part(folder.path(), 1)).unwrap_err().to_string();
    assert!(
        sentence.contains("hold 3 tensors, but 2 are declared"),
        "{sentence}"
    );
}

#[test]
fn the_same_tensor_in_two_parts_is_refused() {
    let folder = set(|number, writer| {
        if number == 2 {
            writer
                .tensor("blk.0.attn_q.weight", TensorType::F16, &[64])
                .unwrap();
        }
    });
    let sentence = read(&part(folder.path(), 1)).unwrap_err().to_string();
    assert!(
        sentence.contains("\"blk.0.attn_q.weight\" is there twice"),
        "{sentence}"
    );
}

#[test]
fn a_broken_part_is_named_by_its_own_path() {
    let folder = set(|_, _| {});
    std::fs::write(part(folder.path(), 2), "<html>").unwrap();
    let sentence = read(&part(folder.path(), 1)).unwrap_err().to_string();
    assert!(
        sentence.starts_with(&part(folder.path(), 2).display().to_string()),
        "{sentence}"
    );
    assert!(sentence.contains("is a web page"), "{sentence}");
}

#[test]
fn a_renamed_part_knows_what_it_lacks_but_not_where_it_is() {
    let folder = set(|_, _| {});
    let renamed = folder.path().join("renamed.gguf");
    std::fs::copy(part(folder.path(), 1), &renamed).unwrap();
    let model = read(&renamed).unwrap();
    assert_eq!(
        model.split.as_ref().unwrap().missing,
        ["part 2 of 3", "part 3 of 3"]
    );
    assert!(model.check().is_err());
}

#[test]
fn a_single_file_whose_name_looks_like_a_part_is_a_single_file() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("x-00001-of-00013");
    std::fs::create_dir(&inside).unwrap();
    for path in [
        inside.join("plain.gguf"),
        folder.path().join("y-00002-of-00007.gguf"),
    ] {
        std::fs::write(&path, file(&support::llama())).unwrap();
        let model = read(&path).unwrap();
        assert_eq!(model.split, None);
        model.check_decodes().unwrap();
    }
}

#[test]
fn a_set_that_claims_more_parts_than_any_is_not_searched_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-00001-of-65000.gguf");
    let mut writer = support::llama();
    writer.set("split.no", 0u16).set("split.count", 65_000u16);
    std::fs::write(&path, file(&writer)).unwrap();
    assert!(
        read(&path)
            .unwrap_err()
            .to_string()
            .contains("says that it is part 1 of 65000")
    );
}

#[test]
fn a_fingerprint_follows_the_content_and_not_the_name() {
    let folder = set(|_, _| {});
    let print = |path: &Path| fingerprint(&read(path).unwrap()).unwrap();
    let original = print(&part(folder.path(), 1));
    assert_eq!(original.len(), 64);
    assert_eq!(
        print(&part(folder.path(), 2)),
        original,
        "any part names the set"
    );

    let moved = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        let name = format!("other-{number:05}-of-00003.gguf");
        std::fs::copy(part(folder.path(), number), moved.path().join(name)).unwrap();
    }
    let elsewhere = moved.path().join("other-00001-of-00003.gguf");
    assert_eq!(
        print(&elsewhere),
        original,
        "another name in another folder"
    );

    let third = moved.path().join("other-00003-of-00003.gguf");
    let mut bytes = std::fs::read(&third).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&third, bytes).unwrap();
    assert_ne!(print(&elsewhere), original, "one bit of the last tensor");

    std::fs::remove_file(&third).unwrap();
    assert_ne!(
        print(&elsewhere),
        original,
        "an incomplete set is another thing"
    );
}

#[test]
fn a_header_and_the_whole_file_differ_in_their_fingerprints() {
    let folder = tempfile::tempdir().unwrap();
    let print = |bytes: &[u8]| {
        let path = folder.path().join("x.gguf");
        std::fs::write(&path, bytes).unwrap();
        fingerprint(&read(&path).unwrap()).unwrap()
    };
    let whole = file(&support::llama());
    let header = support::llama().header();
    assert_ne!(print(&whole), print(&header));
    assert_ne!(print(&whole), print(&whole[..whole.len() - 1]));
}

#[test]
fn a_file_that_changed_meanwhile_gets_no_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    std::fs::copy(fixtures().join("archs/llama-dense-Q8_0.header.gguf"), &path).unwrap();
    let model = read(&path).unwrap();
    std::fs::write(&path, "shorter").unwrap();
    let sentence = fingerprint(&model).unwrap_err().to_string();
    assert!(sentence.contains("changed while it was read"), "{sentence}");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(fingerprint(&model), Err(Error::Unreadable { .. })));
}
