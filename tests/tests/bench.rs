//! `twospeed bench` with a real model: llama-bench's formats, the history behind them, the figure.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Write;
use std::process::{Command, Stdio};

use twospeed_tests::{Desk, data, json, smollm2};

/// Runs Python with a script and standard input; its output.
fn python(script: &str, input: &str) -> String {
    let mut child = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "python refuses it");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn bench(desk: &Desk, format: &str) -> String {
    let model = smollm2();
    desk.run([
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "32,64",
        "-n",
        "8",
        "-pg",
        "32,8",
        "-r",
        "2",
        "-t",
        "2",
        "-o",
        format,
    ])
    .ok()
}

/// The 42 fields as llama-bench's own sample has them.
fn theirs() -> serde_json::Map<String, serde_json::Value> {
    let text = std::fs::read_to_string(data("llama-bench/plain.json")).unwrap();
    json(&text)[0].as_object().unwrap().clone()
}

#[test]
fn every_format_is_read_by_its_own_readers() {
    let desk = Desk::new();
    let from_json = python(
        "import json,sys; d=json.load(sys.stdin); print(*[(r['n_prompt'],r['n_gen']) for r in d])",
        &bench(&desk, "json"),
    );
    assert_eq!(from_json, "(32, 0) (64, 0) (0, 8) (32, 8)");
    let from_lines = python(
        "import json,sys; print(*[json.loads(l)['n_gen'] for l in sys.stdin])",
        &bench(&desk, "jsonl"),
    );
    assert_eq!(from_lines, "0 0 8 8");
    let from_csv = python(
        "import csv,sys; d=list(csv.DictReader(sys.stdin)); print(len(d), len(d[0]), all(float(r['avg_ts'])>0 for r in d))",
        &bench(&desk, "csv"),
    );
    assert_eq!(from_csv, "4 42 True");
    let from_sql = python(
        "import sqlite3,sys; c=sqlite3.connect(':memory:'); c.executescript(sys.stdin.read()); print(*c.execute('select n_prompt, n_gen from llama_bench order by rowid').fetchall())",
        &bench(&desk, "sql"),
    );
    assert_eq!(from_sql, "(32, 0) (64, 0) (0, 8) (32, 8)");
    let table = bench(&desk, "md");
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("| model "), "{table}");
    assert!(lines[2].contains("| llama 256M Q4_1 "), "{table}");
    assert!(
        lines[2].contains(" pp32 |") && lines[5].contains(" pp32+tg8 |"),
        "{table}"
    );
    assert_eq!(lines[7], "build: unknown (11434)");
}

#[test]
fn fields_that_do_not_depend_on_the_machine_are_llama_benchs() {
    let desk = Desk::new();
    let ours = json(&bench(&desk, "json"));
    let ours = ours[0].as_object().unwrap();
    let theirs = theirs();
    let names = |object: &serde_json::Map<String, serde_json::Value>| {
        object.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(names(ours), names(&theirs));
    let machines = [
        "build_number",
        "cpu_info",
        "model_filename",
        "test_time",
        "avg_ns",
        "stddev_ns",
        "avg_ts",
        "stddev_ts",
        "samples_ns",
        "samples_ts",
    ];
    for (field, value) in &theirs {
        if !machines.contains(&field.as_str()) {
            assert_eq!(&ours[field], value, "{field}");
        }
    }
    for field in machines {
        let kind = |value: &serde_json::Value| std::mem::discriminant(value);
        assert_eq!(kind(&ours[field]), kind(&theirs[field]), "{field}");
    }
}

#[test]
fn what_is_printed_is_what_is_kept() {
    let desk = Desk::new();
    let printed = json(&bench(&desk, "json"));
    let exported = json(&desk.run(["export", "-o", "json"]).ok());
    assert_eq!(exported, printed);
    let runs = json(&desk.run(["runs", "--json"]).ok());
    assert_eq!(runs[0]["tests"]["done"], 4);
    assert_eq!(runs[0]["samples"], 8);

    let whole = desk.run(["export"]).ok();
    let file = desk.path().join("results.json");
    std::fs::write(&file, &whole).unwrap();
    let other = Desk::new();
    let import = ["import".as_ref(), file.as_os_str()];
    other.run(import).ok();
    other.run(import).ok();
    let again = json(&other.run(["export", "-o", "json"]).ok());
    assert_eq!(
        again, printed,
        "an import and a second import change nothing"
    );
}

#[test]
fn nothing_is_kept_when_nothing_is_to_be_kept() {
    let desk = Desk::new();
    let model = smollm2();
    desk.run([
        "bench",
        "-m",
        model.to_str().unwrap(),
        "-p",
        "8",
        "-n",
        "0",
        "-r",
        "1",
        "--no-save",
    ])
    .ok();
    assert_eq!(
        json(&desk.run(["runs", "--json"]).ok()),
        serde_json::json!([])
    );
}

#[test]
fn results_name_what_ran_and_where_it_lay() {
    let desk = Desk::new();
    let results = json(&bench(&desk, "results"));
    assert_eq!(results["format"], "twospeed.results/1");
    let test = &results["runs"][0]["tests"][0];
    let end = &test["end"];
    assert_eq!(end["status"], "done");
    assert!(end["worker"]["variant"]["name"].is_string());
    assert_eq!(end["worker"]["engine"]["build_number"], 11434);
    let held = |what: &str| -> u64 {
        let buffers = end["placement"]["buffers"].as_array().unwrap();
        let of = buffers.iter().filter(|buffer| buffer["holds"] == what);
        of.map(|buffer| buffer["bytes"].as_u64().unwrap()).sum()
    };
    // 30 layers x (3 KV heads x 64) x K and V x 2 bytes x 256 cells.
    assert_eq!(held("kv"), 30 * 192 * 2 * 2 * 256);
    // One sequence x 49,152 words x 4 bytes.
    assert_eq!(held("output"), 49_152 * 4);
    assert!(held("model") >= 96_576_768, "all tensors");
    assert!(end["anchor_before_ns"].as_u64().unwrap() > 0);
    assert!(end["loaded"]["load_ns"].as_u64().unwrap() > 0);
}

#[test]
fn the_built_in_model_is_measured_drawn_and_labelled() {
    let desk = Desk::new();
    desk.run(["bench", "-m", "builtin", "-p", "32", "-n", "8", "-r", "2"])
        .ok();
    for format in ["svg", "png", "pdf"] {
        let figure = desk.path().join(format!("speeds.{format}"));
        desk.run([
            "chart".as_ref(),
            "speeds".as_ref(),
            "--overlay".as_ref(),
            "ceiling".as_ref(),
            "--out".as_ref(),
            figure.as_os_str(),
        ])
        .ok();
        let bytes = std::fs::read(&figure).unwrap();
        let magic: &[u8] = match format {
            "svg" => b"<svg",
            "png" => b"\x89PNG",
            _ => b"%PDF",
        };
        assert!(bytes.starts_with(magic), "{format}");
        if format == "svg" {
            let svg = String::from_utf8(bytes).unwrap();
            for text in [
                "Prefill",
                "Decode",
                "ceiling",
                "random weights",
                "llama.cpp build 11434",
            ] {
                assert!(svg.contains(text), "{text} is missing");
            }
        }
    }
}

#[test]
fn a_prompt_is_answered_with_its_parts_timed() {
    let desk = Desk::new();
    let model = smollm2();
    let answer = json(
        &desk
            .run([
                "generate",
                "-m",
                model.to_str().unwrap(),
                "-p",
                "The capital of France is",
                "-n",
                "8",
                "--json",
            ])
            .ok(),
    );
    let generated = &answer["generated"];
    assert!(
        answer["text"].as_str().unwrap().contains("Paris"),
        "{answer:#}"
    );
    let number = |name: &str| generated[name].as_u64().unwrap();
    assert_eq!(number("n_reused"), 0);
    assert!(number("n_generated") <= 8);
    assert!(number("ttft_ns") >= number("tokenize_ns") + number("prefill_ns"));
    let at: Vec<u64> = generated["token_at_ns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|at| at.as_u64().unwrap())
        .collect();
    assert!(at.is_sorted());
    assert_eq!(at[0], number("ttft_ns"));
    assert_eq!(number("decode_ns"), at.last().unwrap() - at[0]);
}
