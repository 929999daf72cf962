//! The speed of a model from its header alone, by the command line and by its parts.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../src-tauri/crates/library/tests/range_server/mod.rs"]
#[allow(dead_code)]
mod range_server;
#[path = "../../src-tauri/crates/library/tests/server/mod.rs"]
#[allow(dead_code)]
mod server;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use range_server::{Manner, RangeServer};
use twospeed_engine::protocol::Request;
use twospeed_estimate::TwinLayers;
use twospeed_gguf::read_from;
use twospeed_library::twin::{padded, twin};
use twospeed_library::{FileType, LlamaShape, ModelHeader, Synthetic};
use twospeed_tests::worker::{Worker, samples, test};
use twospeed_tests::{Desk, Running, data, json};

/// The headers of tiny models of 26 architectures.
fn headers() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(data("gguf/archs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".header.gguf"))
        .collect();
    found.sort();
    found
}

fn write(model: &Synthetic, path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    model.write_repeating(&mut file, &mut |_, _| true).unwrap();
    file.flush().unwrap();
}

/// Whether the engine takes a file and measures both its speeds.
fn runs(path: &Path) -> bool {
    let measured = || {
        let mut worker = Worker::start(&[]);
        worker.load(path);
        [test(16, 0, 0), test(0, 4, 8)]
            .into_iter()
            .all(|asked| samples(&worker.serve(&Request::Measure(asked))).len() == 2)
    };
    std::panic::catch_unwind(measured).unwrap_or(false)
}

/// The name of a file without its ends.
fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap().to_string_lossy();
    name.split('-').next().unwrap().to_owned()
}

/// Twins that the engine refuses, as it says in a sentence: they cannot be predicted yet.
const NOT_YET: [&str; 1] = ["phi3"];
const CUT_NOT_YET: [&str; 8] = [
    "deepseek2 [0, 1, 0, 1]",
    "granitehybrid [0]",
    "jamba [0]",
    "lfm2 [0]",
    "llama4 [0]",
    "phi3 [0]",
    "phi3 [0, 1, 0, 1]",
    "qwen3next [0]",
];

#[test]
fn the_twin_of_every_architecture_loads_and_decodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twin.gguf");
    let mut refused = Vec::new();
    let files = headers();
    assert_eq!(files.len(), 26);
    for file in files {
        let header = ModelHeader::open(&file).unwrap();
        write(&twin(&header, None).unwrap(), &path);
        if !runs(&path) {
            refused.push(stem(&file));
        }
    }
    assert_eq!(refused, NOT_YET);
}

#[test]
fn the_twin_with_fewer_and_with_more_layers_of_every_architecture_loads_and_decodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twin.gguf");
    let mut cut = Vec::new();
    let mut refused = Vec::new();
    for file in headers() {
        let header = ModelHeader::open(&file).unwrap();
        let count = TwinLayers::of(&header.model).count() as u32;
        let all: Vec<u32> = (0..count).collect();
        for choice in [vec![0], all[..all.len().min(2)].repeat(2)] {
            let made = twin(&header, Some(&choice)).unwrap();
            let head = made.header().unwrap();
            let model = read_from(&head[..], "twin.gguf", made.bytes().unwrap()).unwrap();
            if !TwinLayers::same_kinds(&header.model, &model, &choice) {
                continue;
            }
            write(&made, &path);
            if runs(&path) {
                cut.push((file.clone(), choice));
            } else {
                refused.push(format!("{} {choice:?}", stem(&file)));
            }
        }
    }
    assert_eq!(refused, CUT_NOT_YET);
    assert!(cut.len() >= 30, "of 52 most can be made: {}", cut.len());
}

#[test]
fn the_file_of_the_deeper_twin_is_the_shallower_one_under_another_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twin.gguf");
    let header = ModelHeader::open(&data("gguf/archs/qwen3moe-moe-Q8_0.header.gguf")).unwrap();
    let deep = twin(&header, Some(&[0, 1, 0, 1])).unwrap();
    let shallow = padded(&twin(&header, Some(&[0, 1])).unwrap(), &deep).unwrap();
    write(&deep, &path);
    let layers = |path: &Path| {
        let mut worker = Worker::start(&[]);
        worker.load(path).n_layer
    };
    assert_eq!(layers(&path), 4);
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(&shallow.header().unwrap()).unwrap();
    assert_eq!(layers(&path), 2);
    assert!(runs(&path));
}

/// Nothing of a twin is left in a data folder, and no result.
fn nothing_is_left(desk: &Desk) {
    assert!(!desk.path().join("twins").exists());
    assert!(!desk.path().join("history.sqlite").exists());
}

#[test]
fn a_header_is_enough_and_nothing_stays() {
    let desk = Desk::new();
    let file = data("gguf/archs/llama-dense-Q8_0.header.gguf");
    let file = file.to_str().unwrap();
    let said = desk
        .run(["twin", file, "-p", "16", "-n", "4", "-r", "2", "--json"])
        .ok();
    let found = json(&said);
    assert_eq!(found["model"]["architecture"], "llama");
    assert_eq!(found["at"]["prompt"], 16);
    let twins = found["twins"].as_array().unwrap();
    assert_eq!(twins.len(), 1, "a small model is built whole");
    assert_eq!(twins[0]["layers"], found["model"]["layers"]);
    for speed in ["prefill", "decode"] {
        let number = |key: &str| found[speed][key].as_f64().unwrap();
        assert!(0.0 < number("low"), "{said}");
        assert!(number("low") < number("tok_s") && number("tok_s") < number("high"));
    }
    let header_bytes = fs::metadata(file).unwrap().len();
    assert_eq!(found["header_bytes_read"], header_bytes);
    nothing_is_left(&desk);

    let words = desk
        .run(["twin", file, "-p", "16", "-n", "4", "-r", "1"])
        .ok();
    assert!(words.contains("model, predicted"), "{words}");
    assert!(words.contains("random weights"), "{words}");
}

/// A large dense model that is not here: its header alone.
fn large(folder: &Path) -> PathBuf {
    let shape = LlamaShape {
        width: 2048,
        layers: 96,
        heads: 16,
        kv_heads: 8,
        feed_forward: 6144,
        vocabulary: 8_000,
        context: 4096,
    };
    let model = shape.model("Large", FileType::Q4_K_M, 1);
    let path = folder.join("large.header.gguf");
    fs::write(&path, model.header().unwrap()).unwrap();
    path
}

#[test]
fn of_a_large_model_two_depths_are_built_and_lead_to_the_whole() {
    let desk = Desk::new();
    let file = large(desk.path());
    let file = file.to_str().unwrap();
    let said = desk
        .run(["twin", file, "-p", "32", "-n", "8", "-r", "1", "--json"])
        .ok();
    let found = json(&said);
    let twins = found["twins"].as_array().unwrap();
    assert_eq!(twins.len(), 2, "{said}");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(number(&twins[0]["layers"]) < number(&twins[1]["layers"]));
    assert!(number(&twins[1]["layers"]) < 96.0);
    assert!(number(&twins[1]["bytes"]) > 200e6, "far beyond a cache");
    // Nine times the layers and more: slower than the deeper twin, faster than nothing.
    for speed in ["prefill", "decode"] {
        let whole = number(&found[speed]["tok_s"]);
        let deep = number(&twins[1][format!("{speed}_tok_s")]);
        assert!(0.0 < whole && whole < deep, "{speed}: {said}");
        assert!(found["layer"][format!("{speed}_ms")].as_f64().is_some());
    }
    nothing_is_left(&desk);
}

/// The twin's file in a data folder, once it is being written.
fn written(desk: &Desk) -> PathBuf {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "no twin appears");
        let folders = fs::read_dir(desk.path().join("twins"))
            .into_iter()
            .flatten();
        let file = folders
            .flatten()
            .map(|entry| entry.path().join("twin.gguf"))
            .find(|file| fs::metadata(file).is_ok_and(|facts| facts.len() > 1 << 20));
        match file {
            Some(file) => return file,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[cfg(unix)]
#[test]
fn what_a_killed_prediction_leaves_is_gone_at_the_next_start() {
    let desk = Desk::new();
    let file = large(desk.path());
    let running = Running::start(&mut desk.command([OsStr::new("twin"), file.as_os_str()]));
    let left = written(&desk);
    running.kill();
    assert!(left.exists(), "a killed process removes nothing");
    desk.run(["runs"]).ok();
    assert!(!left.exists());
    assert!(!desk.path().join("twins").exists());
}

#[cfg(unix)]
#[test]
fn stopping_it_leaves_nothing() {
    let desk = Desk::new();
    let file = large(desk.path());
    let running = Running::start(&mut desk.command([OsStr::new("twin"), file.as_os_str()]));
    written(&desk);
    let pid = rustix::process::Pid::from_raw(running.pid() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let sentence = running.end().fails(1);
    assert!(sentence.contains("Cancelled"), "{sentence}");
    nothing_is_left(&desk);
}

/// A tiny model's header, which claims weights that are nowhere.
fn tiny() -> (Vec<u8>, u64) {
    let file = data("gguf/archs/qwen3-dense-Q8_0.header.gguf");
    let bytes = twospeed_gguf::read(&file).unwrap().bytes_expected;
    (fs::read(file).unwrap(), bytes)
}

#[test]
fn a_model_elsewhere_is_predicted_from_its_address() {
    let desk = Desk::new();
    let (header, total) = tiny();
    let server = RangeServer::start(header, total, Manner::Parts);
    let url = server.file("tiny.gguf");
    let arguments = ["twin", &url, "-p", "16", "-n", "4", "-r", "1", "--json"];
    let found = json(&desk.run(arguments).ok());
    assert_eq!(found["model"]["architecture"], "qwen3");
    assert_eq!(found["header_bytes_read"], server.sent());
    nothing_is_left(&desk);

    let refused = RangeServer::start(Vec::new(), 1, Manner::Status(404));
    let ran = desk.run(["twin", &refused.file("x.gguf")]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("(404)"), "{}", ran.err);
}

#[test]
fn a_model_elsewhere_is_inspected_and_estimated_from_its_address() {
    let desk = Desk::new();
    let (header, total) = tiny();
    let server = RangeServer::start(header, total, Manner::Parts);
    let url = server.file("tiny.gguf");
    let facts = json(&desk.run(["inspect", &url, "--json"]).ok());
    assert_eq!(facts["architecture"], "qwen3");
    assert_eq!(facts["bytes_expected"], total);
    assert_eq!(facts["path"], url.as_str());
    let temporary = tempfile::tempdir().unwrap();
    let mut command = desk.command(["estimate", &url, "-c", "1024", "--json"]);
    command.env("TMPDIR", temporary.path());
    let ran = twospeed_tests::Ran::from(command.output().unwrap());
    let said = json(&ran.ok());
    // By the engine or, where a twin of the tests beside this one is measured just then, without it.
    assert!(said["memory"]["kv_bytes"].as_u64() > Some(0));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_model_of_a_repository_is_predicted_by_its_name() {
    let desk = Desk::new();
    let (mut content, total) = tiny();
    content.resize(total as usize, 0);
    let server = server::Server::with("owner/tiny-GGUF", &[("tiny-Q8_0.gguf", &content)]);
    let mut command = desk.command(["twin", "owner/tiny-GGUF:Q8_0", "-p", "16", "-n", "0"]);
    command.env("HF_ENDPOINT", server.address());
    command.env_remove("HF_TOKEN");
    let ran = twospeed_tests::Ran::from(command.output().unwrap());
    assert!(
        ran.ok().contains("not predicted"),
        "decode was not asked for"
    );
}

#[test]
fn what_cannot_be_predicted_is_one_sentence() {
    let desk = Desk::new();
    desk.run(["twin", "missing.gguf"]).fails(1);
    desk.run(["twin", "https://"]).fails(2);
    let file = data("gguf/archs/llama-dense-Q8_0.header.gguf");
    let file = file.to_str().unwrap();
    desk.run(["twin", file, "-p", "0", "-n", "0"]).fails(2);
    desk.run(["twin", file, "-r", "0"]).fails(2);
    let no_model = data("gguf/hostile/KV_SUCCESS.gguf");
    desk.run(["twin", no_model.to_str().unwrap()]).fails(1);
}
