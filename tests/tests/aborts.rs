//! Model files that pass every check of ours and end the engine all the same.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use twospeed_tests::worker::tiny;
use twospeed_tests::{Desk, Ran, json};

/// Where the engine meets its end, and with which words.
struct Fault {
    name: &'static str,
    change: fn(&mut Vec<u8>),
    says: &'static str,
}

/// An assertion while it loads, one while it builds the context's graph, one inside the first
/// decode.
const FAULTS: [Fault; 3] = [
    Fault {
        name: "a token comes twice",
        change: |header| {
            replace(
                header,
                b"\x05\0\0\0\0\0\0\0tok_1",
                b"\x05\0\0\0\0\0\0\0tok_0",
            )
        },
        says: "failed while loading",
    },
    Fault {
        name: "keys are narrower than the heads",
        change: |header| {
            set(
                header,
                b"starcoder2.attention.key_length",
                4,
                &64_u32.to_le_bytes(),
            )
        },
        says: "failed while measuring",
    },
    Fault {
        name: "an epsilon below zero",
        change: |header| {
            set(
                header,
                b"starcoder2.attention.layer_norm_epsilon",
                6,
                &(-1_f32).to_le_bytes(),
            );
        },
        says: "failed while measuring",
    },
];

/// Overwrites the first place that holds `old`.
fn replace(header: &mut [u8], old: &[u8], new: &[u8]) {
    let at = header.windows(old.len()).position(|window| window == old);
    let at = at.expect("the header holds it");
    header[at..at + new.len()].copy_from_slice(new);
}

/// Overwrites a key's number of this type.
fn set(header: &mut [u8], key: &[u8], type_id: u8, value: &[u8]) {
    let at = header.windows(key.len()).position(|window| window == key);
    let at = at.expect("the header has the key") + key.len();
    assert_eq!(header[at], type_id, "the number's type");
    header[at + 4..at + 4 + value.len()].copy_from_slice(value);
}

fn model(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    tiny(folder, "starcoder2-dense-Q8_0", change)
}

fn bench(desk: &Desk, models: &[&Path]) -> Ran {
    let mut arguments = vec!["bench"];
    for model in models {
        arguments.extend(["-m", model.to_str().unwrap()]);
    }
    arguments.extend("-p 8 -n 2 -r 1 -t 1 -o jsonl".split(' '));
    desk.run(&arguments)
}

#[test]
fn a_model_that_aborts_the_engine_costs_its_own_tests_alone() {
    let desk = Desk::new();
    let (bad_folder, good_folder) = (desk.path().join("bad"), desk.path().join("good"));
    std::fs::create_dir_all(&bad_folder).unwrap();
    std::fs::create_dir_all(&good_folder).unwrap();
    let good = model(&good_folder, |_| {});
    for fault in &FAULTS {
        let bad = model(&bad_folder, fault.change);
        desk.run(["inspect".as_ref(), bad.as_os_str()]).ok();

        let ran = bench(&desk, &[&bad, &good]);
        let name = fault.name;
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        let sentence = ran.err.lines().next().unwrap();
        assert!(sentence.starts_with("pp8 of "), "{name}: {sentence}");
        assert!(sentence.contains(fault.says), "{name}: {sentence}");
        assert!(sentence.contains("GGML_ASSERT"), "{name}: {sentence}");
        assert!(sentence.contains("another file"), "what to do: {sentence}");
        assert!(!ran.err.contains("panicked"), "{name}: {}", ran.err);
        let measured: Vec<_> = ran.out.lines().map(json).collect();
        assert_eq!(measured.len(), 2, "{name}: the good model is measured");
        for row in &measured {
            assert_eq!(row["model_filename"], good.to_str().unwrap(), "{name}");
        }
    }
}

#[test]
fn a_model_that_aborts_the_engine_has_no_answer() {
    let desk = Desk::new();
    for fault in &FAULTS {
        let bad = model(desk.path(), fault.change);
        let arguments = [
            "generate",
            "-p",
            "0 1",
            "-n",
            "2",
            "-t",
            "1",
            "-m",
            bad.to_str().unwrap(),
        ];
        let sentence = desk.run(arguments).fails(1);
        assert!(
            sentence.contains("GGML_ASSERT"),
            "{}: {sentence}",
            fault.name
        );
    }
}
