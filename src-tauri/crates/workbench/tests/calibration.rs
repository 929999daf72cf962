//! Calibrating with the scripted engine, and what holds afterwards.
// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use twospeed_engine::fake::{FakeEngine, Script, hello};
use twospeed_engine::protocol::{Event, Kernel as AskedKernel, KernelReading, Request, Sample};
use twospeed_engine::{How, Settings, TestSpec};
use twospeed_estimate::{Calibration, Corrections, Kernel, Question, estimate};
use twospeed_gguf::TensorType;
use twospeed_history::History;
use twospeed_measure::machine::Machine;
use twospeed_measure::{
    Conditions, Kind, Lease, Recorder, RunRecord, SampleRecord, Stop, TestEnd, TestRecord,
    TestStatus, platform,
};
use twospeed_workbench::calibration::{
    CalibrateProgress, CalibrateRequest, NotCalibrated, Rates, calibrate, current,
};
use twospeed_workbench::{Grounds, Problem, ReadSpeed, Subject, basis_words};
use uuid::Uuid;

fn machine() -> Machine {
    Machine {
        last_level_cache_bytes: Some(96 << 20),
        ..platform::machine()
    }
}

async fn lease(folder: &Path) -> Lease {
    let place = folder.join("lease");
    Lease::acquire(&place, "calibration", jiff::Timestamp::now, |_| {})
        .await
        .unwrap()
}

/// Calibrates; what came of it, and what was told meanwhile.
async fn run(
    engine: &FakeEngine,
    history: &History,
    threads: u32,
    stop: &Stop,
) -> (Result<Calibration, Problem>, Vec<CalibrateProgress>) {
    let folder = tempfile::tempdir().unwrap();
    let lease = lease(folder.path()).await;
    let mut told = Vec::new();
    let request = CalibrateRequest {
        engine,
        history,
        machine: &machine(),
        threads,
        ubatch: 512,
        stop,
    };
    let made = calibrate(&request, &lease, &mut |step| told.push(step)).await;
    (made, told)
}

async fn holds(history: &History, threads: u32) -> Result<String, NotCalibrated> {
    let found = current(history, &machine(), threads, 512, None, None).await;
    found.unwrap().map(|calibration| calibration.id.clone())
}

fn said(told: &[CalibrateProgress]) -> Vec<&str> {
    told.iter()
        .filter_map(|step| match step {
            CalibrateProgress::Said(sentence) => Some(sentence.as_str()),
            _ => None,
        })
        .collect()
}

fn sigill() -> How {
    How::Signal {
        number: 4,
        name: "SIGILL".into(),
    }
}

fn sigabrt() -> How {
    How::Signal {
        number: 6,
        name: "SIGABRT".into(),
    }
}

#[tokio::test]
async fn what_was_measured_is_kept_and_holds_for_its_threads_alone() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let threads = platform::default_threads();
    assert_eq!(holds(&history, threads).await, Err(NotCalibrated::Never));
    let (made, told) = run(&FakeEngine::new(), &history, threads, &Stop::new()).await;
    let made = made.unwrap();
    assert_eq!(holds(&history, threads).await.unwrap(), made.id);
    let other = holds(&history, threads + 1).await.unwrap_err();
    assert!(matches!(other, NotCalibrated::Threads { .. }), "{other:?}");

    assert_eq!(told[0], CalibrateProgress::Memory);
    let of = made.kernels.len() as u32;
    assert_eq!(told[1], CalibrateProgress::Kernels { done: 0, of });
    assert_eq!(
        told[told.len() - 1],
        CalibrateProgress::Kernels { done: of, of }
    );
    assert_eq!(made.last_level_cache.unwrap().0, 96 << 20);
    // A quarter of the cache, all of it, twice and more than four times as much.
    let reads: Vec<_> = made.reads.iter().map(|read| read.buffer.0 >> 20).collect();
    assert_eq!(reads, [24, 96, 192, 512]);
    // The scripted machine multiplies 200 GFLOP/s, and takes a microsecond to begin.
    let rates = Rates::of(&made);
    let batch = rates.matrix(TensorType::Q4K).unwrap().batch.unwrap().0 as f64;
    assert!((199e9..200e9).contains(&batch), "{batch}");
    // Ceilings stand on it too.
    let known = ReadSpeed::load(&history, &machine()).await.unwrap();
    assert_eq!(known.readings().len(), 4);
}

#[tokio::test]
async fn with_other_threads_than_the_usual_ones_ceilings_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let threads = platform::default_threads() + 1;
    let (made, _) = run(&FakeEngine::new(), &history, threads, &Stop::new()).await;
    assert!(!made.unwrap().reads.is_empty());
    let known = ReadSpeed::load(&history, &machine()).await.unwrap();
    assert!(known.readings().is_empty());
}

#[tokio::test]
async fn measured_anew_the_newest_holds() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let engine = FakeEngine::new();
    let (first, _) = run(&engine, &history, 2, &Stop::new()).await;
    let (second, _) = run(&engine, &history, 2, &Stop::new()).await;
    assert_ne!(first.unwrap().id, second.as_ref().unwrap().id);
    assert_eq!(holds(&history, 2).await.unwrap(), second.unwrap().id);
}

#[tokio::test]
async fn a_variant_that_dies_is_set_aside_and_the_next_is_calibrated() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let engine = FakeEngine::new()
        .with_variants(&["sapphirerapids", "icelake"])
        .answers(|asked| {
            let dies =
                matches!(asked.request, Request::Calibrate(_)) && asked.variant == "sapphirerapids";
            dies.then(|| Script::new().die(sigill()))
        });
    let (made, told) = run(&engine, &history, 2, &Stop::new()).await;
    assert_eq!(made.unwrap().variant, "icelake");
    let said = said(&told);
    assert!(
        said[0].contains("sapphirerapids") && said.len() == 1,
        "{said:?}"
    );
    // It is not tried again, and memory was read once alone.
    let (again, told) = run(&engine, &history, 2, &Stop::new()).await;
    assert_eq!(again.unwrap().variant, "icelake");
    assert!(
        told.iter()
            .all(|step| !matches!(step, CalibrateProgress::Said(_)))
    );
    let reads = engine
        .requests()
        .iter()
        .filter(|request| matches!(request, Request::ReadBandwidth(_)))
        .count();
    assert_eq!(reads, 2, "once for each calibration");
}

/// Dies at the kernel that is chosen, as often as it is asked for.
fn dies_at(fatal: impl Fn(&AskedKernel) -> bool + Send + Sync + 'static, how: How) -> FakeEngine {
    FakeEngine::new().answers(move |asked| {
        let Request::Calibrate(calibrate) = asked.request else {
            return None;
        };
        let at = calibrate.kernels.iter().position(&fatal)? as u32;
        let kernels = calibrate.kernels.len() as u32;
        let before = (1..=at).fold(Script::new(), |script, done| {
            script.say(Event::CalibrateProgress { done, kernels })
        });
        Some(before.die(how.clone()))
    })
}

fn is_mxfp4(kernel: &AskedKernel) -> bool {
    matches!(kernel, AskedKernel::Matrix { tensor_type, .. } if tensor_type == "mxfp4")
}

#[tokio::test]
async fn a_kernel_that_ends_the_engine_is_left_out_and_the_rest_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let fatal = |kernel: &AskedKernel| {
        is_mxfp4(kernel)
            && matches!(
                kernel,
                AskedKernel::Matrix {
                    columns: 512,
                    inner: 2048,
                    ..
                }
            )
    };
    let (made, told) = run(&dies_at(fatal, sigabrt()), &history, 2, &Stop::new()).await;
    let made = made.unwrap();
    assert_eq!(
        said(&told),
        ["Left out, since it ended the engine: MXFP4 matrix, 512 columns."]
    );
    let of_type = made.kernels.iter().filter(|reading| {
        matches!(reading.kernel, Kernel::Matrix { tensor_type, .. } if tensor_type == TensorType::Mxfp4)
    });
    assert_eq!(of_type.count(), 3, "the others of its type are there");
}

#[tokio::test]
async fn an_engine_that_ends_again_and_again_is_given_up_and_so_is_want_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let (made, told) = run(&dies_at(|_| true, sigabrt()), &history, 2, &Stop::new()).await;
    assert_eq!(made.unwrap_err().code, "engine_check_failed");
    assert_eq!(said(&told).len(), 3);
    let (made, told) = run(
        &dies_at(is_mxfp4, How::OutOfMemory),
        &history,
        2,
        &Stop::new(),
    )
    .await;
    assert_eq!(made.unwrap_err().code, "engine_out_of_memory");
    assert!(said(&told).is_empty());
    assert_eq!(holds(&history, 2).await, Err(NotCalibrated::Never));
}

#[tokio::test]
async fn what_the_engine_does_not_do_is_named_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let refuses = |all: bool| {
        FakeEngine::new().answers(move |asked| {
            let Request::Calibrate(calibrate) = asked.request else {
                return None;
            };
            let answer = |kernel: &AskedKernel| match all || is_mxfp4(kernel) {
                true => KernelReading {
                    ns: None,
                    spread_ns: None,
                    repacked: false,
                    refused: Some("This build has no such type.".into()),
                },
                false => KernelReading {
                    ns: Some(1e6),
                    spread_ns: Some(1e4),
                    repacked: true,
                    refused: None,
                },
            };
            Some(Script::new().say(Event::Calibrated {
                readings: calibrate.kernels.iter().map(answer).collect(),
            }))
        })
    };
    let (made, told) = run(&refuses(false), &history, 2, &Stop::new()).await;
    let rates = Rates::of(&made.unwrap());
    assert_eq!(rates.matrix(TensorType::Mxfp4), None);
    assert!(rates.matrix(TensorType::Q4_0).unwrap().repacked);
    let said = said(&told);
    assert_eq!(said.len(), 4);
    assert!(
        said[0].starts_with("Left out, MXFP4 matrix, 1 column: This build"),
        "{said:?}"
    );
    let (made, _) = run(&refuses(true), &history, 2, &Stop::new()).await;
    assert_eq!(made.unwrap_err().code, "calibration_failed");
}

#[tokio::test]
async fn stopped_it_keeps_what_was_known() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let (first, _) = run(&FakeEngine::new(), &history, 2, &Stop::new()).await;
    let first = first.unwrap().id;
    let slow = FakeEngine::new().with_pace(100.0);
    let stop = Stop::new();
    let asked = stop.clone();
    let (made, ()) = tokio::join!(run(&slow, &history, 2, &stop), async move {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        asked.now();
    });
    assert_eq!(made.0.unwrap_err().code, "cancelled");
    assert_eq!(holds(&history, 2).await.unwrap(), first);
}

/// A header with nothing but zeros behind it, as a file of its full length.
fn small_model(folder: &Path) -> Subject {
    let file = folder.join("small.gguf");
    let header = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(header), &file).unwrap();
    let bytes = twospeed_gguf::read(&file).unwrap().bytes_expected;
    let whole = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    whole.set_len(bytes).unwrap();
    Subject::read(&file).unwrap()
}

/// A run with one test that took so long, three times.
async fn measured(history: &History, subject: &Subject, spec: TestSpec, ns: u64) -> Uuid {
    let now = jiff::Timestamp::now();
    let run = RunRecord {
        id: Uuid::now_v7(),
        started_at: now,
        machine: platform::machine(),
        app_version: "0.1.0".into(),
        preset: "bench".into(),
        owner_pid: 1,
        owner_started: None,
        plan: None,
    };
    history.run_started(&run).await.unwrap();
    let test = TestRecord {
        id: Uuid::now_v7(),
        run: run.id,
        position: 0,
        model: subject.measured.clone(),
        spec,
        kind: Kind::Speed,
        settings: Settings {
            n_threads: 2,
            ..Settings::default()
        },
        repetitions: 3,
        warmup: true,
        started_at: now,
    };
    history.test_started(&test).await.unwrap();
    for index in 0..3 {
        let sample = Sample {
            index,
            ns,
            involuntary_switches: None,
            major_faults: None,
            reading: None,
        };
        let sample = SampleRecord {
            test: test.id,
            sample,
            at: now,
            conditions: Conditions::default(),
        };
        history.sample(&sample).await.unwrap();
    }
    let end = TestEnd {
        test: test.id,
        status: TestStatus::Done,
        ended_at: now,
        worker: Some(hello()),
        loaded: None,
        placement: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        state_before: None,
        state_after: None,
        peak_rss_bytes: None,
        warnings: Vec::new(),
    };
    history.test_ended(&end).await.unwrap();
    history.run_ended(run.id, now, true).await.unwrap();
    run.id
}

const TG128: TestSpec = TestSpec {
    n_prompt: 0,
    n_gen: 128,
    n_depth: 0,
};

#[tokio::test]
async fn an_estimate_that_own_runs_corrected_says_what_they_measured() {
    let folder = tempfile::tempdir().unwrap();
    let history = History::open(folder.path()).await.unwrap();
    let subject = small_model(folder.path());
    let model = &subject.header;
    let machine = platform::machine();
    let asked = || async {
        let grounds = Grounds::load(&history, &machine, 2, 512, None).await;
        grounds.unwrap().ask(model, Question::default())
    };
    // 128 tokens in 1.28 s are 100 tok/s.
    measured(&history, &subject, TG128, 1_280_000_000).await;
    let nothing = Corrections::default();
    let before = asked().await;
    assert_eq!((before.calibration, before.corrections), (None, nothing));

    let (made, _) = run(&FakeEngine::new(), &history, 2, &Stop::new()).await;
    made.unwrap();
    let once = asked().await;
    assert_eq!(once.corrections.prefill, None);
    let decode = once.corrections.decode.unwrap();
    assert_eq!((decode.runs, decode.same_model), (1, true));
    let said = estimate(model, &once);
    let expected = said.decode.expected_tok_s.unwrap().0;
    assert!((expected - 100.0).abs() < 1e-6, "{expected}");
    assert_eq!(said.basis.corrected_by_runs, 1);
    assert_eq!(basis_words(&said.basis), "calibrated, corrected by 1 run");

    // Two more, at 100 and 101 tok/s: the median stays, and three narrow the band.
    measured(&history, &subject, TG128, 1_280_000_000).await;
    let last = measured(&history, &subject, TG128, 1_267_326_733).await;
    let thrice = asked().await;
    assert_eq!(thrice.corrections.decode.unwrap().runs, 3);
    let now = estimate(model, &thrice).decode;
    assert!((now.expected_tok_s.unwrap().0 - 100.0).abs() < 1e-6);
    let width = |low: f64, high: f64| high / low;
    let (before, after) = (said.decode, now);
    assert!(
        width(
            after.expected_low.unwrap().0,
            after.expected_high.unwrap().0
        ) < width(
            before.expected_low.unwrap().0,
            before.expected_high.unwrap().0
        )
    );

    // A run that is deleted teaches nothing any more.
    history
        .delete_runs(&[last], jiff::Timestamp::now())
        .await
        .unwrap();
    assert_eq!(asked().await.corrections.decode.unwrap().runs, 2);
    let other_threads = Grounds::load(&history, &machine, 3, 512, None).await;
    let other_threads = other_threads.unwrap().ask(model, Question::default());
    assert_eq!(other_threads.calibration, None);
    assert_eq!(other_threads.corrections, nothing);
}
