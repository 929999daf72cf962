//! Models quantized by the real engine: of the foreseen size, usable afterwards, whole or not at all.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use twospeed_tests::{Desk, data, json, model, smollm2};

fn arguments<'a>(from: &'a Path, to: &'a Path, file_type: &'a str) -> Vec<&'a std::ffi::OsStr> {
    let plain: [&std::ffi::OsStr; 5] = [
        "quantize".as_ref(),
        from.as_os_str(),
        to.as_os_str(),
        file_type.as_ref(),
        "--json".as_ref(),
    ];
    plain.to_vec()
}

/// Makes a quantization and says what the command said of it.
fn made(desk: &Desk, from: &Path, file_type: &str) -> (PathBuf, Value) {
    let to = desk.path().join(format!("made-{file_type}.gguf"));
    let said = json(&desk.run(arguments(from, &to, file_type)).ok());
    assert_eq!(said["path"], to.to_str().unwrap());
    assert_eq!(said["bytes"], fs::metadata(&to).unwrap().len());
    assert_eq!(said["quantization"], file_type);
    (to, said)
}

fn assert_foreseen(said: &Value) {
    let (bytes, foreseen) = (
        said["bytes"].as_f64().unwrap(),
        said["bytes_foreseen"].as_f64().unwrap(),
    );
    let off = (bytes / foreseen - 1.0).abs();
    // What is left out is two keys of the header.
    assert!(off < 0.001, "foreseen {foreseen}, made {bytes}");
}

/// Files of a folder, the database aside.
fn models_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("history."))
        .collect();
    names.sort();
    names
}

#[test]
fn a_quantized_model_loads_and_is_measured() {
    let desk = Desk::new();
    for file_type in ["Q8_0", "Q4_K_M"] {
        let (path, said) = made(&desk, &smollm2(), file_type);
        assert_foreseen(&said);
        // Q4_1 again: the person is told that it costs quality.
        assert!(
            said["warnings"][0]
                .as_str()
                .unwrap()
                .contains("costs quality")
        );
        let rows = desk.run([
            "bench",
            "-m",
            path.to_str().unwrap(),
            "-p",
            "8",
            "-n",
            "4",
            "-r",
            "1",
            "-o",
            "json",
            "--no-save",
        ]);
        let rows = json(&rows.ok());
        assert_eq!(rows.as_array().unwrap().len(), 2);
        assert!(rows[0]["avg_ts"].as_f64().unwrap() > 0.0);
    }
    // Its rows of 576 are no multiples of 256, and the engine says how many tensors that concerns.
    let (_, said) = made(&desk, &smollm2(), "Q6_K");
    assert!(said["fallbacks"].as_u64().unwrap() > 100, "{said}");
    assert_eq!(
        models_in(desk.path()),
        ["made-Q4_K_M.gguf", "made-Q6_K.gguf", "made-Q8_0.gguf"]
    );
}

#[test]
fn the_size_is_foreseen_for_every_kind_of_rule() {
    let desk = Desk::new();
    // Of blocks that do not fit, of blocks that do, with and without an output matrix of its own.
    let gemma = model("gemma-3-270m-q4_k_m.gguf");
    for file_type in ["Q4_0", "Q5_K_S", "F16"] {
        assert_foreseen(&made(&desk, &gemma, file_type).1);
    }
    for file_type in ["Q2_K", "Q3_K_L"] {
        assert_foreseen(&made(&desk, &smollm2(), file_type).1);
    }
    for file_type in ["Q3_K_M", "Q4_K_S", "Q5_1"] {
        assert_foreseen(&made(&desk, Path::new("builtin"), file_type).1);
    }
}

#[test]
fn what_cannot_be_made_is_one_sentence_and_no_file() {
    let desk = Desk::new();
    let to = desk.path().join("out.gguf");
    let refused = |from: &Path, to: &Path, file_type: &str, code| {
        let sentence = desk.run(arguments(from, to, file_type)).fails(code);
        assert!(models_in(desk.path()).is_empty(), "{sentence}");
        sentence
    };
    let smollm2 = smollm2();
    let sentence = refused(&smollm2, &to, "Q4_M", 2);
    assert!(sentence.contains("nearest is Q4_"), "{sentence}");
    let sentence = refused(&smollm2, &to, "IQ2_XS", 2);
    assert!(sentence.contains("importance matrix"), "{sentence}");
    let sentence = refused(&smollm2, &to, "Q4_1", 1);
    assert!(sentence.contains("is Q4_1 already"), "{sentence}");
    let sentence = refused(&smollm2, &to, "Q1_0", 1);
    assert!(sentence.contains("no whole blocks"), "{sentence}");
    let header = data("gguf/archs/llama-dense-Q8_0.header.gguf");
    let sentence = refused(&header, &to, "Q4_0", 1);
    assert!(sentence.contains("weights"), "{sentence}");
    let sentence = refused(&data("gguf/README.md"), &to, "Q4_0", 1);
    assert!(sentence.contains("not a GGUF"), "{sentence}");
    let sentence = refused(&smollm2, &desk.path().join("no/where.gguf"), "Q8_0", 1);
    assert!(sentence.contains("there is no folder"), "{sentence}");
}

#[test]
fn a_file_that_is_there_is_overwritten_only_when_told_to() {
    let desk = Desk::new();
    let to = desk.path().join("mine.gguf");
    fs::write(&to, "mine").unwrap();
    let source = smollm2();
    let plain = arguments(&source, &to, "Q8_0");
    let sentence = desk.run(&plain).fails(1);
    assert!(sentence.contains("is there already"), "{sentence}");
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    let forced = [&plain[..], &["--force".as_ref()]].concat();
    desk.run(forced).ok();
    assert!(fs::metadata(&to).unwrap().len() > 1_000_000);
    let onto_itself = [&arguments(&to, &to, "Q4_0")[..], &["--force".as_ref()]].concat();
    let sentence = desk.run(onto_itself).fails(1);
    assert!(sentence.contains("name another"), "{sentence}");
    assert_eq!(models_in(desk.path()), ["mine.gguf"]);
}

#[test]
fn a_folder_gets_the_usual_name() {
    let desk = Desk::new();
    let source = smollm2();
    let said = json(&desk.run(arguments(&source, desk.path(), "Q4_0")).ok());
    let path = desk.path().join("SmolLM2-135M-Instruct.Q4_0.gguf");
    assert_eq!(said["path"], path.to_str().unwrap());
}

#[cfg(target_os = "linux")]
mod ended_early {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};
    use twospeed_tests::{Running, twospeed};

    use super::*;

    const UNFINISHED: &str = "out.gguf.quantize.part";

    /// A quantization that takes seconds, once the engine writes.
    fn started(desk: &Desk) -> Running {
        let source = model("gemma-3-270m-q4_k_m.gguf");
        let to = desk.path().join("out.gguf");
        let running = Running::start(&mut desk.command(arguments(&source, &to, "Q6_K")));
        let begun = Instant::now();
        let unfinished = desk.path().join(UNFINISHED);
        while !fs::metadata(&unfinished).is_ok_and(|facts| facts.len() > 0) {
            assert!(begun.elapsed() < Duration::from_secs(300), "it never began");
            std::thread::sleep(Duration::from_millis(2));
        }
        running
    }

    fn worker_of(parent: u32) -> Pid {
        let children =
            fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    #[test]
    fn a_cancelled_one_leaves_nothing_behind() {
        let desk = Desk::new();
        let running = started(&desk);
        let pid = Pid::from_raw(running.pid().cast_signed()).unwrap();
        let worker = worker_of(running.pid());
        kill_process(pid, Signal::INT).unwrap();
        let asked = Instant::now();
        let ran = running.end();
        assert!(
            asked.elapsed() < Duration::from_secs(3),
            "{:?}",
            asked.elapsed()
        );
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.err.contains("Cancelled: nothing was made."),
            "{}",
            ran.err
        );
        assert!(
            models_in(desk.path()).is_empty(),
            "{:?}",
            models_in(desk.path())
        );
        assert!(
            kill_process(worker, Signal::CONT).is_err(),
            "the worker lives on"
        );
    }

    #[test]
    fn a_worker_killed_in_the_middle_is_one_sentence_and_no_file() {
        let desk = Desk::new();
        let running = started(&desk);
        kill_process(worker_of(running.pid()), Signal::KILL).unwrap();
        let ran = running.end();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let said: Vec<_> = ran.err.lines().collect();
        assert!(
            said.last()
                .unwrap()
                .starts_with("The engine was killed while quantizing"),
            "{said:?}"
        );
        assert!(
            models_in(desk.path()).is_empty(),
            "{:?}",
            models_in(desk.path())
        );
    }

    /// In a mount namespace of its own: a disk too small, and one that fills up meanwhile.
    const SCRIPT: &str = r#"
mount -t tmpfs -o size=300m none "$DISK" || exit 77
head -c 200000000 /dev/zero >"$DISK/other"
"$TWOSPEED" quantize "$MODEL" "$DISK/out.gguf" Q8_0 2>"$SMALL"; echo $? >>"$CODES"
rm "$DISK/other"
"$TWOSPEED" quantize "$MODEL" "$DISK/out.gguf" Q8_0 2>"$FULL" &
until [ -s "$DISK/out.gguf.quantize.part" ]; do sleep 0.002; done
cat /dev/zero >"$DISK/other" 2>/dev/null
wait $!; echo $? >>"$CODES"
ls "$DISK" >"$LEFT"
"#;

    #[test]
    fn a_disk_that_is_too_small_or_fills_up_is_told_and_nothing_stays() {
        let desk = Desk::new();
        let disk = desk.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let place = |name: &str| desk.path().join(name);
        let status = Command::new("unshare")
            .args(["--mount", "--map-root-user", "sh", "-c", SCRIPT])
            .env("DISK", &disk)
            .env("TWOSPEED_DATA_DIR", desk.path())
            .env("TWOSPEED", twospeed())
            .env("MODEL", smollm2())
            .envs(["CODES", "SMALL", "FULL", "LEFT"].map(|name| (name, place(name))))
            .status();
        if !status.is_ok_and(|status| status.success()) {
            println!("not run: this system lets nobody mount a disk of their own here");
            return;
        }
        let read = |name: &str| fs::read_to_string(place(name)).unwrap();
        assert_eq!(
            read("CODES").split_whitespace().collect::<Vec<_>>(),
            ["1", "1"]
        );
        assert!(
            read("SMALL").contains("are free there"),
            "{}",
            read("SMALL")
        );
        assert!(
            read("FULL").contains("its disk is full"),
            "{}",
            read("FULL")
        );
        assert_eq!(read("LEFT").trim(), "other");
    }
}
