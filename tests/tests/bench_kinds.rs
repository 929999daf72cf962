//! `twospeed bench` beyond llama-bench: tests that are more than one speed, plans in files, runs that
//! go on.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use serde_json::Value;
use twospeed_tests::{Desk, Running, json, smollm2};

/// `twospeed bench` with SmolLM2 and these flags.
fn line<'a>(model: &'a str, flags: &'a str) -> Vec<&'a str> {
    let mut words = vec!["bench", "-m", model];
    words.extend(flags.split(' '));
    words
}

fn model() -> String {
    smollm2().to_str().unwrap().to_owned()
}

/// The tests of the only run in `-o results`.
fn tests(results: &str) -> Vec<Value> {
    let results = json(results);
    assert_eq!(results["runs"].as_array().unwrap().len(), 1);
    results["runs"][0]["tests"].as_array().unwrap().clone()
}

/// What a test's first sample consists of.
fn reading(test: &Value) -> &Value {
    &test["samples"][0]["reading"]
}

#[test]
fn every_kind_is_measured_and_kept_and_no_row_of_llama_benchs() {
    let desk = Desk::new();
    let model = model();
    let flags = "--ttft --prefix-cache --users 2 --quality --chunks 2 --ctx 64 --no-base -p 32 -n 4 -r 1 -o results";
    let tests = tests(&desk.run(line(&model, flags)).ok());
    let kinds: Vec<_> = tests.iter().map(|test| &test["kind"]["name"]).collect();
    assert_eq!(
        kinds,
        [
            "first_token",
            "first_token",
            "prefix_cache",
            "users",
            "quality"
        ]
    );
    for (test, page_cache) in tests.iter().zip(["drop", "warm"]) {
        assert_eq!(test["kind"]["page_cache"], page_cache);
        assert!(reading(test)["load"]["load_ns"].as_u64().unwrap() > 0);
        let first = &reading(test)["requests"][0];
        assert_eq!(
            (&first["n_prompt"], &first["n_reused"]),
            (&32.into(), &0.into())
        );
    }
    let reused: Vec<_> = reading(&tests[2])["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| request["n_reused"].as_u64().unwrap())
        .collect();
    // All but the last token of the same prompt; three quarters of it where the tail changed.
    assert_eq!(reused, [0, 31, 24]);
    assert_eq!(reading(&tests[3])["ttft_ns"].as_array().unwrap().len(), 2);
    // Of 64 tokens the second half is scored, but for the last, which has nothing to predict.
    assert_eq!(reading(&tests[4])["n_scored"], 2 * 31);
    assert!(reading(&tests[4])["perplexity"].as_f64().unwrap() > 1.0);

    let rows = json(&desk.run(["export", "-o", "json"]).ok());
    assert_eq!(rows, serde_json::json!([]));
}

#[test]
fn kinds_have_tables_of_their_own_below_llama_benchs() {
    let desk = Desk::new();
    let model = model();
    let ran = desk.run(line(&model, "--users 1 --speeds -p 8 -n 4 -r 1"));
    let table = ran.ok();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[2].contains(" pp8 |") && lines[3].contains(" tg4 |"));
    assert_eq!(lines[5], "build: unknown (11434)");
    assert!(table.contains("decode t/s, each"), "{table}");
    assert!(table.contains("| users1 pp8+tg4 |"), "{table}");
}

#[test]
fn a_format_without_room_for_a_test_is_refused_before_it_is_measured() {
    let desk = Desk::new();
    let model = model();
    let sentence = desk.run(line(&model, "--users 2 -o csv")).fails(2);
    assert!(sentence.contains("-o results"), "{sentence}");
    let ran = desk.run(line(&model, "--users 1 --speeds -p 8 -n 1 -r 1 -o jsonl"));
    assert!(ran.err.contains("left out of the jsonl"), "{}", ran.err);
    assert_eq!(ran.ok().lines().count(), 2);
}

#[test]
fn repetitions_take_turns_or_go_on_until_the_mean_is_known() {
    let desk = Desk::new();
    let model = model();
    let ran = desk.run(line(&model, "-p 8,16 -n 0 -r 2 --interleave -o results"));
    let made = tests(&ran.ok());
    let at = |test: usize, sample: usize| {
        let at = made[test]["samples"][sample]["at"].as_str().unwrap();
        at.parse::<jiff::Timestamp>().unwrap()
    };
    let turns = [at(0, 0), at(1, 0), at(0, 1), at(1, 1)];
    assert!(turns.is_sorted(), "{turns:?}");

    let flags = "-p 8 -n 0 --until 90% --until-max 4 --no-save";
    let table = desk.run(line(&model, flags)).ok();
    assert!(
        table.contains("Repeated until each mean is known"),
        "{table}"
    );
    assert!(table.contains("90.0 % "), "{table}");
}

#[test]
fn a_plan_is_a_file_that_can_be_edited_and_run() {
    let desk = Desk::new();
    let model = model();
    let flags = "-p 8,16 -n 0 -r 1 --users 1 --speeds --print-plan";
    let printed = desk.run(line(&model, &format!("{flags} -n 4"))).ok();
    let mut plan = json(&printed);
    assert_eq!(plan["tests"].as_array().unwrap().len(), 5);
    assert_eq!(
        json(&desk.run(["runs", "--json"]).ok()),
        serde_json::json!([])
    );
    plan["tests"].as_array_mut().unwrap().truncate(2);
    let file = desk.path().join("plan.json");
    std::fs::write(&file, plan.to_string()).unwrap();
    let run = ["bench".as_ref(), "--plan".as_ref(), file.as_os_str()];
    let table = desk.run(run).ok();
    assert!(
        table.contains(" pp8 |") && table.contains(" pp16 |"),
        "{table}"
    );

    std::fs::write(&file, "{}").unwrap();
    let sentence = desk.run(run).fails(2);
    assert!(sentence.contains("--print-plan"), "{sentence}");
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_what_is_missing() {
    let desk = Desk::new();
    let model = model();
    let sentence = desk.run(["bench", "--resume"]).fails(1);
    assert!(!sentence.is_empty());

    let mut command = desk.command(line(&model, "-p 8-13 -n 0 -r 3 -o jsonl"));
    let running = Running::start(&mut command);
    let begun = Instant::now();
    let done = || json(&desk.run(["runs", "--json"]).ok())[0]["tests"]["done"].as_u64();
    while done().unwrap_or(0) < 2 {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "it never got there"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    running.kill();
    let before = json(&desk.run(["export", "-o", "json"]).ok());

    let ran = desk.run(["bench", "--resume", "-o", "jsonl"]);
    assert!(ran.err.contains("of 6 tests are kept"), "{}", ran.err);
    assert!(ran.err.contains("missing: pp13 of"), "{}", ran.err);
    assert!(!ran.err.contains("missing: pp8 of"), "{}", ran.err);
    let rows: Vec<Value> = ran.ok().lines().map(json).collect();
    let prompts: Vec<_> = rows
        .iter()
        .map(|row| row["n_prompt"].as_u64().unwrap())
        .collect();
    assert_eq!(prompts, [8, 9, 10, 11, 12, 13]);
    for (kept, row) in before.as_array().unwrap().iter().zip(&rows) {
        assert_eq!(kept, row, "what was kept is not measured again");
    }
    let runs = json(&desk.run(["runs", "--json"]).ok());
    assert_eq!(runs.as_array().unwrap().len(), 1, "it is the same run");
    assert_eq!(runs[0]["run"]["status"], "complete");
    assert_eq!(
        json(&desk.run(["export", "-o", "json"]).ok())
            .as_array()
            .unwrap()
            .len(),
        6
    );
    let sentence = desk.run(["bench", "--resume"]).fails(1);
    assert!(
        !sentence.is_empty(),
        "there is nothing to go on with any more"
    );
}

#[test]
fn what_needs_the_network_or_another_build_is_said_with_a_way_out() {
    let desk = Desk::new();
    for (flags, says) in [
        ("-hf ggml-org/x", "twospeed download"),
        ("-rpc host:1", "without RPC"),
        ("-mmp 0", "-lm none"),
        ("--frobnicate-it", "--frobnicate-it"),
        ("-m x --gpu-layers 3", "the nearest is --n-gpu-layers"),
        ("-m x --max-depth 3", "--context-curve"),
    ] {
        let mut words = vec!["bench"];
        words.extend(flags.split(' '));
        let sentence = desk.run(words).fails(2);
        assert!(sentence.contains(says), "{flags}: {sentence}");
    }
    let devices = desk.run(["bench", "--list-devices"]).ok();
    assert!(devices.starts_with("Available devices:\n"), "{devices}");
    let version = desk.run(["bench", "--version"]).ok();
    assert!(version.contains("build 11434"), "{version}");
}
