//! Bad input: one sentence that names the thing and says what to do, an exit code, nothing lost.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use twospeed_tests::{Desk, data, json, smollm2};

#[test]
fn hostile_files_are_judged_as_expected_and_at_once() {
    let desk = Desk::new();
    let folder = data("gguf/hostile");
    let expectations = fs::read_to_string(folder.join("expectations.csv")).unwrap();
    let mut judged = 0;
    for line in expectations.lines().skip(1) {
        let mut fields = line.split(',');
        let (name, sound) = (fields.next().unwrap(), fields.next().unwrap() == "yes");
        let file = folder.join(name);
        let begun = Instant::now();
        let ran = desk.run(["inspect".as_ref(), file.as_os_str(), "--json".as_ref()]);
        let took = begun.elapsed();
        if sound {
            assert_eq!(json(&ran.ok())["kind"], "none", "{name} holds no model");
        } else {
            let sentence = ran.fails(1);
            assert!(sentence.contains(name), "{sentence}");
        }
        assert!(took < Duration::from_millis(400), "{name} took {took:?}");
        judged += 1;
    }
    assert_eq!(judged, 25);
}

#[test]
fn what_is_no_model_is_named_for_what_it_is() {
    let desk = Desk::new();
    let folder = desk.path();
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let cases = [
        (folder.join("nowhere.gguf"), "does not exist"),
        (folder.to_owned(), "is a folder"),
        (file("empty.gguf", b""), "is empty"),
        (
            file(
                "page.gguf",
                b"<!doctype html>\n<html><body>404</body></html>",
            ),
            "web page",
        ),
        (
            file("text.gguf", b"hello world, this is no model at all"),
            "not a GGUF",
        ),
    ];
    for (path, says) in cases {
        for command in ["inspect", "estimate"] {
            let sentence = desk.run([command.as_ref(), path.as_os_str()]).fails(1);
            assert!(sentence.contains(says), "{command}: {sentence}");
        }
        let sentence = desk
            .run(["bench".as_ref(), "-m".as_ref(), path.as_os_str()])
            .fails(1);
        assert!(sentence.contains(says), "bench: {sentence}");
    }
}

#[test]
fn a_truncated_download_is_named_with_what_is_there() {
    let desk = Desk::new();
    let whole = fs::read(smollm2()).unwrap();
    let cut = desk.path().join("cut.gguf");
    fs::write(&cut, &whole[..50_000_000]).unwrap();
    for command in [
        vec!["inspect"],
        vec!["bench", "-m"],
        vec!["generate", "-p", "x", "-m"],
    ] {
        let mut arguments: Vec<_> = command.iter().map(std::ffi::OsString::from).collect();
        arguments.push(cut.clone().into_os_string());
        let sentence = desk.run(&arguments).fails(1);
        assert!(sentence.contains("50000000"), "{sentence}");
        assert!(sentence.contains("cut.gguf"), "{sentence}");
    }
}

#[test]
fn settings_that_make_no_sense_are_usage_errors() {
    let desk = Desk::new();
    let model = smollm2();
    let model = model.to_str().unwrap();
    for (arguments, says) in [
        (vec!["-t", "0"], "-t 0"),
        (vec!["-r", "0"], "Repetitions"),
        (vec!["-b", "0"], "-b 0"),
        (vec!["-ub", "0"], "-ub 0"),
        (vec!["-p", "0", "-n", "0"], "nothing to measure"),
        (vec!["-p", "5-1*0"], "-p"),
        (vec!["-p", "many"], "many"),
        (vec!["-t", "100000"], "threads"),
        (vec!["-p", "3000000000"], "context"),
        (vec!["-o", "xml"], "xml"),
        (vec!["--frobnicate"], "--frobnicate"),
    ] {
        let mut all = vec!["bench", "-m", model];
        all.extend(&arguments);
        let ran = desk.run(&all);
        let code = ran.code;
        let sentence = ran.err.clone();
        assert_eq!(code, Some(2), "{arguments:?}: {sentence}");
        assert!(sentence.contains(says), "{arguments:?}: {sentence}");
        assert!(!sentence.contains("panicked"), "{sentence}");
    }
}

#[test]
fn a_context_that_cannot_fit_is_refused_and_the_rest_is_measured() {
    let desk = Desk::new();
    let model = smollm2();
    let ran = desk.run([
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "16",
        "-n",
        "0",
        "-d",
        "0,2000000000",
        "-r",
        "1",
        "-o",
        "jsonl",
    ]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        ran.out.lines().count(),
        1,
        "the test that fits is there: {}",
        ran.out
    );
    assert_eq!(json(ran.out.trim())["n_depth"], 0);
    assert!(ran.err.contains("GiB"), "{}", ran.err);
}

#[test]
fn a_file_may_have_any_name() {
    let desk = Desk::new();
    let name = std::ffi::OsStr::from_bytes(b"m\xff\n\x1b[31m, -x.gguf");
    let path = desk.path().join(name);
    std::os::unix::fs::symlink(smollm2(), &path).unwrap();
    let facts = json(
        &desk
            .run(["inspect".as_ref(), path.as_os_str(), "--json".as_ref()])
            .ok(),
    );
    assert_eq!(facts["quantization"], "Q4_1");
    let table = desk.run([
        "bench".as_ref(),
        "-m".as_ref(),
        path.as_os_str(),
        "-p".as_ref(),
        "8".as_ref(),
        "-n".as_ref(),
        "0".as_ref(),
        "-r".as_ref(),
        "1".as_ref(),
    ]);
    assert!(table.ok().contains("pp8"));
    let listed = desk.run(["models".as_ref(), desk.path().as_os_str()]).ok();
    assert!(
        !listed.contains('\x1b'),
        "nothing repaints the terminal: {listed:?}"
    );
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let desk = Desk::new();
    desk.run(["runs"]).ok();
    let file = desk.path().join("history.sqlite");
    let python = "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('PRAGMA user_version=9999'); c.commit()";
    let status = std::process::Command::new("python3")
        .args(["-c", python])
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    let before = fs::read(&file).unwrap();
    let model = smollm2();
    let sentence = desk
        .run([
            "bench",
            "-m",
            model.to_str().unwrap(),
            "-p",
            "8",
            "-n",
            "0",
            "-r",
            "1",
        ])
        .fails(1);
    assert!(sentence.contains("newer"), "{sentence}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_damaged_history_is_set_aside_with_a_word() {
    let desk = Desk::new();
    let file = desk.path().join("history.sqlite");
    let garbage = vec![0x5au8; 8192];
    fs::write(&file, &garbage).unwrap();
    let ran = desk.run(["runs"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("damaged"), "{}", ran.err);
    let kept = fs::read_dir(desk.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .any(|path| path != file && fs::read(&path).is_ok_and(|content| content == garbage));
    assert!(kept, "the damaged file is still there under another name");
}

#[test]
fn an_unwritable_place_for_a_figure_is_named() {
    let desk = Desk::new();
    let sentence = desk
        .run(["chart", "speeds", "--out", "/nowhere/at/all.svg"])
        .fails(1);
    assert!(
        sentence.contains("Measure first") || sentence.contains("/nowhere"),
        "{sentence}"
    );
    let ran = desk.run(["chart", "speeds", "--out", "figure.doc"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains(".svg"), "{}", ran.err);
}
