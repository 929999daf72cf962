//! Files of llama-bench and llama-batched-bench, as they printed them.

use serde_json::Value;
use twospeed_engine::FlashAttention;
use twospeed_engine::protocol::Reading;
use twospeed_history::llama_bench::{self, Row, write_batched};
use twospeed_history::{Form, History, Imported, Origin, Outcome, RunFilter, Test, WholeRun};
use twospeed_measure::Kind;

use crate::{open, records, usual_run};

/// A file that llama-bench printed.
pub fn sample(name: &str) -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/data/llama-bench"
    );
    std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
}

/// What llama-batched-bench printed for one, two and four users.
const BATCHED: &str = r#"{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": -1, "is_pp_shared": 0, "n_gpu_layers": -1, "n_threads": 2, "n_threads_batch": 2, "pp": 32, "tg": 8, "pl": 1, "n_kv": 40, "t_pp": 0.120552, "speed_pp": 265.445618, "t_tg": 0.072009, "speed_tg": 111.097229, "t": 0.192561, "speed": 207.726379}
{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": -1, "is_pp_shared": 0, "n_gpu_layers": -1, "n_threads": 2, "n_threads_batch": 2, "pp": 32, "tg": 8, "pl": 2, "n_kv": 80, "t_pp": 0.220707, "speed_pp": 289.977203, "t_tg": 0.118463, "speed_tg": 135.063263, "t": 0.339170, "speed": 235.869919}
{"n_kv_max": 2048, "n_batch": 2048, "n_ubatch": 512, "flash_attn": -1, "is_pp_shared": 0, "n_gpu_layers": -1, "n_threads": 2, "n_threads_batch": 2, "pp": 32, "tg": 8, "pl": 4, "n_kv": 160, "t_pp": 0.428002, "speed_pp": 299.064026, "t_tg": 0.184095, "speed_tg": 173.823303, "t": 0.612097, "speed": 261.396454}
"#;

/// A history of its own with what was imported into it, oldest first.
pub struct Desk {
    _folder: tempfile::TempDir,
    pub history: History,
}

impl Desk {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path()).await;
        Self {
            _folder: folder,
            history,
        }
    }

    pub async fn import(&self, file: impl Into<Vec<u8>>) -> Imported {
        self.history
            .import(file.into(), records::at(6000))
            .await
            .unwrap()
    }

    pub async fn runs(&self) -> Vec<WholeRun> {
        let mut runs = self
            .history
            .whole_runs(&RunFilter::default())
            .await
            .unwrap();
        runs.reverse();
        runs
    }

    pub async fn tests(&self) -> Vec<Test> {
        self.runs()
            .await
            .into_iter()
            .flat_map(|run| run.tests)
            .collect()
    }
}

/// The tests of one file.
pub async fn tests_of(file: impl Into<Vec<u8>>) -> Vec<Test> {
    let desk = Desk::new().await;
    let imported = desk.import(file).await;
    assert!(imported.rejected.is_empty(), "{:?}", imported.rejected);
    desk.tests().await
}

fn names(tests: &[Test]) -> Vec<String> {
    tests
        .iter()
        .map(|test| test.record.spec.to_string())
        .collect()
}

/// The tests written again by us.
fn written(format: &str, tests: &[Test]) -> String {
    let rows: Vec<Row> = tests.iter().filter_map(Row::of_test).collect();
    let mut out = Vec::new();
    llama_bench::write(
        llama_bench::format(format).unwrap().as_mut(),
        &rows,
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[tokio::test]
async fn every_format_is_told_by_its_content_and_gives_its_rows() {
    let forms = [
        ("json", Form::Json),
        ("jsonl", Form::JsonLines),
        ("csv", Form::Csv),
        ("md", Form::Markdown),
        ("sql", Form::Sql),
    ];
    for (ending, form) in forms {
        let desk = Desk::new().await;
        let imported = desk.import(sample(&format!("plain.{ending}"))).await;
        assert_eq!(imported.form, form);
        assert!(
            imported.rejected.is_empty() && imported.flagged.is_empty(),
            "{imported:?}"
        );
        let runs = desk.runs().await;
        assert_eq!(runs.len(), 1, "{ending}");
        assert_eq!(runs[0].run.origin, Origin::LlamaBench);
        assert_eq!(
            names(&runs[0].tests),
            ["pp32", "pp64", "tg8", "pp32+tg8"],
            "{ending}"
        );

        let depth = tests_of(sample(&format!("depth.{ending}"))).await;
        assert_eq!(
            names(&depth),
            [
                "pp32",
                "pp64",
                "tg8",
                "pp32 @ d128",
                "pp64 @ d128",
                "tg8 @ d128"
            ],
            "{ending}"
        );
        let cache = tests_of(sample(&format!("kv-q8_0.{ending}"))).await;
        for test in &cache {
            let settings = &test.record.settings;
            assert_eq!(
                (settings.type_k.as_str(), settings.flash_attn),
                ("q8_0", FlashAttention::On)
            );
            assert_eq!(settings.n_threads, 2);
            assert_eq!(test.record.model.quantization.as_deref(), Some("Q4_1"));
        }
    }
}

#[tokio::test]
async fn a_file_written_again_is_the_file() {
    for name in ["plain", "depth", "kv-q8_0"] {
        for ending in ["csv", "md", "sql"] {
            let file = sample(&format!("{name}.{ending}"));
            assert_eq!(
                written(ending, &tests_of(file.clone()).await),
                file,
                "{name}.{ending}"
            );
        }
        // With samples, statistics are computed anew: llama-bench's stddev_ns is off.
        let rows = |text: &str| -> Vec<serde_json::Map<String, Value>> {
            let mut rows: Vec<serde_json::Map<_, _>> = serde_json::from_str(text).unwrap();
            rows.iter_mut()
                .for_each(|row| drop(row.remove("stddev_ns")));
            rows
        };
        let file = sample(&format!("{name}.json"));
        assert_eq!(
            rows(&written("json", &tests_of(file.clone()).await)),
            rows(&file)
        );
    }
}

#[tokio::test]
async fn the_same_rows_add_nothing_whatever_they_stand_in() {
    let desk = Desk::new().await;
    let file = sample("plain.json");
    desk.import(file.clone()).await;
    let before = desk.runs().await;
    let mut rows: Vec<Value> = serde_json::from_str(&file).unwrap();
    rows.reverse();
    let again = [
        file.clone(),
        serde_json::to_string(&rows).unwrap(),
        format!("load_backend: loaded CPU backend from /a/b.so\n{file}\ndone\n"),
        // Printed by the same run.
        sample("plain.csv"),
    ];
    for file in again {
        let imported = desk.import(file).await;
        assert_eq!(imported.runs.len(), 1);
        let run = imported.runs[0];
        assert_eq!(
            (run.outcome, run.taken, run.known),
            (Outcome::AlreadyThere, 0, 4)
        );
    }
    assert_eq!(desk.runs().await, before);
}

#[tokio::test]
async fn samples_that_come_later_complete_what_is_there() {
    let desk = Desk::new().await;
    desk.import(sample("plain.csv")).await;
    assert!(
        desk.tests()
            .await
            .iter()
            .all(|test| test.samples.is_empty() && test.reported.is_some())
    );
    let imported = desk.import(sample("plain.json")).await;
    assert_eq!(imported.runs[0].outcome, Outcome::Completed);
    let tests = desk.tests().await;
    assert_eq!(tests.len(), 4);
    // From the sample's samples_ns, by hand: 32e9 / 112446087, ...
    let speed = tests[0].speed().unwrap();
    assert_eq!(speed.samples.len(), 3);
    assert!((speed.mean - 240.845_721).abs() < 1e-5, "{}", speed.mean);
}

#[tokio::test]
async fn what_was_measured_here_does_not_come_back_as_another_machines() {
    let desk = Desk::new().await;
    let (run, _) = usual_run(&desk.history).await;
    let file = written("json", &desk.tests().await);
    let imported = desk.import(file.clone()).await;
    let came = &imported.runs[0];
    assert_eq!(
        (came.id, came.outcome, came.known),
        (run.id, Outcome::AlreadyThere, 2)
    );
    assert_eq!(desk.runs().await.len(), 1);
    desk.history
        .delete_runs(&[run.id], records::at(0))
        .await
        .unwrap();
    let imported = desk.import(file).await;
    assert_eq!(imported.runs[0].outcome, Outcome::Restored);
    assert_eq!(desk.runs().await.len(), 1);
}

#[tokio::test]
async fn a_file_that_grew_adds_what_is_new_to_its_run() {
    let desk = Desk::new().await;
    let file = sample("plain.jsonl");
    let lines: Vec<_> = file.lines().collect();
    desk.import(lines[1..3].join("\n")).await;
    let imported = desk.import(file.clone()).await;
    let run = imported.runs[0];
    assert_eq!(
        (run.outcome, run.taken, run.known),
        (Outcome::Completed, 2, 2)
    );
    assert_eq!(desk.runs().await.len(), 1);
}

#[tokio::test]
async fn rows_of_two_machines_are_two_runs() {
    let file = sample("plain.jsonl");
    let other = file.replace("Intel(R) Xeon(R) Processor", "AMD EPYC 9654");
    let desk = Desk::new().await;
    desk.import(format!("{file}{other}")).await;
    let runs = desk.runs().await;
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0].run.machine.id, runs[1].run.machine.id);
    assert_eq!(
        runs[0].tests[0].record.model.fingerprint, runs[1].tests[0].record.model.fingerprint,
        "the same file, as far as is told"
    );
}

#[tokio::test]
async fn what_a_file_does_not_tell_is_unknown_and_no_default() {
    let test = &tests_of(sample("plain.md")).await[0];
    for name in [
        "n_batch",
        "type_k",
        "model_path",
        "started_at",
        "repetitions",
        "prio",
    ] {
        assert!(!test.knows(name), "{name}");
    }
    assert!(test.knows("n_threads") && test.knows("parameters"));
    let from_csv = &tests_of(sample("plain.csv")).await[0];
    assert!(from_csv.knows("n_batch") && !from_csv.knows("numa"));
    assert!(
        !test.same_settings(from_csv),
        "a known setting is not an unknown one"
    );
    let told = from_csv.told.as_ref().unwrap();
    assert_eq!(told.backends.as_deref(), Some("CPU"));
    assert_eq!(told.model_size, Some(96_576_768));
}

#[tokio::test]
async fn users_side_by_side_come_with_their_aggregate() {
    let desk = Desk::new().await;
    let imported = desk.import(BATCHED).await;
    assert_eq!(imported.form, Form::Batched);
    let runs = desk.runs().await;
    assert_eq!(runs[0].run.origin, Origin::LlamaBatchedBench);
    // speed_tg of the file.
    for (test, (users, aggregate)) in
        runs[0]
            .tests
            .iter()
            .zip([(1, 111.097_229), (2, 135.063_263), (4, 173.823_303)])
    {
        assert_eq!(
            test.record.kind,
            Kind::Users {
                users,
                split_kv: false,
                shared_prompt: false
            }
        );
        assert!(!test.knows("split_kv"));
        let Some(Reading::Users(reading)) = &test.samples[0].sample.reading else {
            panic!("{test:?}");
        };
        let speed = 1e9 * f64::from(users * 8) / reading.decode_ns as f64;
        assert!((speed - aggregate).abs() < 1e-3, "{speed}");
        assert_eq!(test.samples.len(), 1, "one run has no spread");
    }
    let mut again = Vec::new();
    for test in &runs[0].tests {
        write_batched(test, &mut again).unwrap();
    }
    let numbers = |text: &str| -> Vec<(String, f64)> {
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Map<_, _>>(line).unwrap());
        lines
            .flatten()
            .map(|(name, value)| (name, value.as_f64().unwrap()))
            .collect()
    };
    let (ours, theirs) = (
        numbers(std::str::from_utf8(&again).unwrap()),
        numbers(BATCHED),
    );
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.0, theirs.0);
        // Their times are rounded to microseconds, the speeds are not.
        assert!(
            (ours.1 - theirs.1).abs() <= theirs.1.abs() * 2e-5,
            "{ours:?} {theirs:?}"
        );
    }
    let imported = desk.import(BATCHED).await;
    assert_eq!(imported.runs[0].outcome, Outcome::AlreadyThere);
}

#[tokio::test]
async fn users_of_two_unknown_models_are_not_merged() {
    let desk = Desk::new().await;
    desk.import(BATCHED).await;
    desk.import(BATCHED.replace("0.072009", "0.082009")).await;
    let tests = desk.tests().await;
    let models: std::collections::BTreeSet<_> = tests
        .iter()
        .map(|test| test.record.model.fingerprint.clone())
        .collect();
    // The two lines that both files share are there once.
    assert_eq!((tests.len(), models.len()), (4, 1));
    let other = Desk::new().await;
    other.import(BATCHED.lines().next().unwrap()).await;
    other.import(BATCHED.lines().nth(1).unwrap()).await;
    let tests = other.tests().await;
    assert_ne!(
        tests[0].record.model.fingerprint,
        tests[1].record.model.fingerprint
    );
}

#[tokio::test]
async fn foreign_results_go_on_to_a_third_machine_as_they_are() {
    let (here, there) = (Desk::new().await, Desk::new().await);
    here.import(sample("plain.json")).await;
    here.import(sample("plain.md")).await;
    here.import(BATCHED).await;
    let ids: Vec<_> = here.runs().await.iter().map(|run| run.run.id).collect();
    let mut file = Vec::new();
    here.history
        .export(&ids, records::at(7000), &mut file)
        .await
        .unwrap();
    let imported = there.import(file).await;
    assert!(imported.rejected.is_empty(), "{:?}", imported.rejected);
    for id in ids {
        let (mine, theirs) = (
            here.history.run(id).await.unwrap().unwrap(),
            there.history.run(id).await.unwrap().unwrap(),
        );
        assert_eq!(theirs, mine);
    }
    for file in [sample("plain.json"), sample("plain.md"), BATCHED.to_owned()] {
        let imported = there.import(file).await;
        assert_eq!(imported.runs[0].outcome, Outcome::AlreadyThere);
    }
}
