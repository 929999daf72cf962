//! The worker alone, driven line by line: what it says, when, and what it refuses.

#[cfg(target_os = "linux")]
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use twospeed_engine::Settings;
use twospeed_engine::protocol::*;
use twospeed_tests::worker::{Worker, load, phases, samples, settings, test};
use twospeed_tests::{data, smollm2};

#[test]
fn it_says_hello_with_the_best_variant_there_is() {
    let worker = Worker::start(&[]);
    let hello = &worker.hello;
    assert_eq!(hello.protocol, PROTOCOL);
    assert_eq!(hello.engine.build_number, 11434);
    assert_eq!(hello.variant, hello.variants[0]);
    assert!(
        hello
            .devices
            .iter()
            .any(|device| device.kind == DeviceKind::Cpu)
    );

    let best = hello.variant.name.clone();
    let aside = Worker::start(&["--set-aside", &best]);
    assert_eq!(aside.hello.variant, hello.variants[1], "the next best");
    assert_eq!(
        aside.hello.variants, hello.variants,
        "what is set aside is still told of"
    );
    let last = hello.variants.last().unwrap().name.clone();
    assert_eq!(
        Worker::start(&["--variant", &last]).hello.variant.name,
        last
    );
}

#[test]
fn a_real_model_is_loaded_and_both_speeds_are_measured() {
    let mut worker = Worker::start(&[]);
    let loaded = worker.load(&smollm2());
    // From the file's own header and llama-bench's row for it.
    assert_eq!(loaded.model_type, "llama 256M Q4_1");
    assert_eq!(
        (loaded.model_size, loaded.model_n_params),
        (96_576_768, 134_515_008)
    );
    assert_eq!(
        (loaded.n_layer, loaded.n_ctx_train, loaded.n_vocab),
        (30, 8192, 49_152)
    );
    assert_eq!(
        (loaded.ability, loaded.recurrent),
        (Ability::Generates, false)
    );

    let two_threads = Settings {
        n_threads: 2,
        ..settings()
    };
    let said = worker.serve(&Request::Measure(Measure {
        settings: two_threads,
        ..test(32, 0, 0)
    }));
    assert_eq!(
        phases(&said),
        [
            Phase::Warmup,
            Phase::Repetition { number: 1 },
            Phase::Repetition { number: 2 },
        ]
    );
    let indices: Vec<u32> = samples(&said).iter().map(|sample| sample.index).collect();
    assert_eq!(indices, [0, 1]);
    assert!(samples(&said).iter().all(|sample| sample.ns > 100_000));
    let Some(Event::Measured(measured)) = said.last() else {
        panic!("{said:?}")
    };
    assert_eq!(measured.repetitions, 2);

    let said = worker.serve(&Request::Measure(Measure {
        warmup: false,
        ..test(8, 2, 0)
    }));
    assert_eq!(samples(&said).len(), 2);
    assert!(!phases(&said).contains(&Phase::Warmup));
    assert_eq!(worker.end(Duration::from_secs(2)), Some(0));
}

#[test]
fn buffers_are_told_to_the_byte_before_anything_is_computed() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.ask(&Request::Measure(Measure {
        warmup: false,
        ..test(512, 0, 3584)
    }));
    let Event::Placed(placement) = worker.hear() else {
        panic!("placement comes first")
    };
    worker.ask(&Request::Cancel);
    assert_eq!(worker.closing(), Event::Cancelled);
    let bytes = |holds| {
        placement
            .buffers
            .iter()
            .filter(|b| b.holds == holds)
            .map(|b| b.bytes)
            .sum::<u64>()
    };
    // 30 layers x 4,096 cells x 2 x 3 heads x 64 x 2 bytes; a row of 49,152 floats.
    assert_eq!(bytes(BufferUse::Kv), 30 * 4096 * 2 * 3 * 64 * 2);
    assert_eq!(bytes(BufferUse::Output), 49_152 * 4);
    assert_eq!(bytes(BufferUse::State), 0);
    // llama.cpp's own breakdown for this model and context; whether weights are repacked is the
    // processor's matter.
    assert_eq!(bytes(BufferUse::Compute), 111_955_968);
    assert!(bytes(BufferUse::Model) >= 96_576_768);
    assert_eq!(
        (placement.n_ctx, placement.flash_attention),
        (4096, Some(true))
    );
    assert_eq!(
        placement.offloaded_layers, None,
        "there is no GPU in this build"
    );
}

#[test]
fn a_timed_section_waits_for_go_and_ends_when_it_is_enough() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.ends_after_one(&Request::Measure(Measure {
        repetitions: 5,
        ..test(16, 0, 0)
    }));
}

#[test]
fn a_depth_is_computed_once_and_restored_after() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    let depths = |said: &[Event]| -> Vec<bool> {
        phases(said)
            .iter()
            .filter_map(|phase| match phase {
                Phase::Depth { restored } => Some(*restored),
                _ => None,
            })
            .collect()
    };
    let said = worker.serve(&Request::Measure(test(8, 0, 40)));
    assert_eq!(depths(&said), [false, true]);
    let said = worker.serve(&Request::Measure(test(0, 2, 40)));
    assert_eq!(
        depths(&said),
        [true, true],
        "another test at the same depth"
    );
    let quantized = Settings {
        type_k: "q8_0".into(),
        type_v: "q8_0".into(),
        ..settings()
    };
    let said = worker.serve(&Request::Measure(Measure {
        settings: quantized,
        ..test(8, 0, 40)
    }));
    assert_eq!(depths(&said), [false, true], "a cache of another type");
}

#[test]
fn cancel_stops_a_long_test_and_the_worker_takes_the_next() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.begin(&Request::Measure(Measure {
        warmup: false,
        ..test(8000, 0, 0)
    }));
    std::thread::sleep(Duration::from_millis(200));
    let asked = Instant::now();
    worker.ask(&Request::Cancel);
    assert_eq!(worker.hear(), Event::Cancelled);
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "{:?}",
        asked.elapsed()
    );
    // A cancel that comes too late is for nothing.
    worker.ask(&Request::Cancel);
    let said = worker.serve(&Request::Measure(test(8, 0, 0)));
    assert!(
        matches!(said.last(), Some(Event::Measured(_))),
        "{:?}",
        said.last()
    );
}

#[test]
fn the_end_of_its_input_ends_it_in_the_middle_of_a_test() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.begin(&Request::Measure(Measure {
        warmup: false,
        ..test(8000, 0, 0)
    }));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(worker.end(Duration::from_secs(2)), Some(0));
}

#[test]
fn what_cannot_work_is_refused_in_a_sentence_and_nothing_is_lost() {
    let mut worker = Worker::start(&[]);
    let nothing = worker.failure(&Request::Measure(test(8, 0, 0)));
    assert_eq!(nothing.code, FailureCode::NothingLoaded);
    let missing = worker.failure(&load(Path::new("/nowhere/x.gguf"), PageCache::AsIs));
    assert_eq!(missing.code, FailureCode::FileUnreadable);
    assert!(
        missing.message.contains("/nowhere/x.gguf"),
        "{}",
        missing.message
    );
    let hostile = worker.failure(&load(
        &data("gguf/hostile/HEADER_BAD_MAGIC.gguf"),
        PageCache::AsIs,
    ));
    assert_eq!(hostile.code, FailureCode::ModelRefused);
    assert!(hostile.message.contains("magic"), "{}", hostile.message);
    assert!(
        !hostile.log.is_empty(),
        "the engine's own words come with it"
    );

    worker.load(&smollm2());
    let with = |change: &dyn Fn(&mut Measure)| {
        let mut measure = test(8, 0, 0);
        change(&mut measure);
        Request::Measure(measure)
    };
    for (request, code, names) in [
        (
            with(&|m| m.settings.n_threads = 0),
            FailureCode::BadSetting,
            "n_threads",
        ),
        (
            with(&|m| m.settings.type_k = "q3_k".into()),
            FailureCode::BadSetting,
            "q3_k",
        ),
        (
            with(&|m| m.settings.n_batch = 0),
            FailureCode::BadSetting,
            "n_batch",
        ),
        (
            with(&|m| m.settings.no_host = true),
            FailureCode::BadSetting,
            "other settings",
        ),
        (
            with(&|m| m.repetitions = 0),
            FailureCode::BadSetting,
            "repetitions",
        ),
        (
            with(&|m| m.spec.n_prompt = 0),
            FailureCode::BadSetting,
            "no tokens",
        ),
        // 477 GiB and more: the kernel would grant them and kill whoever uses them.
        (
            with(&|m| m.spec.n_depth = 2_000_000_000),
            FailureCode::ContextRefused,
            "GiB",
        ),
        (
            with(&|m| m.spec.n_depth = 30_000_000),
            FailureCode::ContextRefused,
            "GiB",
        ),
        (
            with(&|m| m.spec.n_depth = u32::MAX),
            FailureCode::ContextRefused,
            "more than any context",
        ),
    ] {
        worker.refuses(&request, code, names);
    }
    worker.say(
        "{\"request\":\"dance\"}
",
    );
    assert!(matches!(
        worker.hear(),
        Event::Failed(Failure {
            code: FailureCode::Internal,
            ..
        })
    ));
    let said = worker.serve(&Request::Measure(test(8, 0, 0)));
    assert!(
        matches!(said.last(), Some(Event::Measured(_))),
        "after all that it measures"
    );
}

#[test]
fn the_page_cache_is_warmed_and_what_lay_in_it_is_told() {
    let mut worker = Worker::start(&[]);
    let said = worker.serve(&load(&smollm2(), PageCache::Warm));
    let Some(Event::Loaded(loaded)) = said.last() else {
        panic!("{said:?}")
    };
    assert_eq!(loaded.page_cache, PageCache::Warm);
    if let Some(share) = loaded.resident_before {
        assert!(share > 0.95, "{share} of a file that was just read");
    }
    let fractions: Vec<f32> = said
        .iter()
        .filter_map(|event| match event {
            Event::LoadProgress { fraction } => Some(*fraction),
            _ => None,
        })
        .collect();
    assert!(fractions.is_sorted());
    assert_eq!(fractions.last(), Some(&1.0));
}

#[test]
fn the_anchor_and_the_read_probe_answer_without_a_model() {
    let mut worker = Worker::start(&[]);
    let said = worker.serve(&Request::Anchor(AnchorRequest { n_threads: 1 }));
    assert!(
        matches!(said[..], [Event::Anchor { ns }] if ns > 10_000_000),
        "{said:?}"
    );
    let probe = ReadBandwidth {
        buffer_bytes: vec![1 << 20, 64 << 20],
        n_threads: 2,
        duration_ns: 50_000_000,
    };
    let said = worker.serve(&Request::ReadBandwidth(probe));
    let [Event::Bandwidth { readings }] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(readings.len(), 2);
    assert!(
        readings
            .iter()
            .all(|reading| reading.bytes_per_second > 1e8)
    );
}

/// Between "go" and the sample no thread of the worker but the engine's own may wake.
#[cfg(target_os = "linux")]
#[test]
fn the_thread_that_listens_sleeps_through_a_timed_section() {
    let mut worker = Worker::start(&[]);
    worker.load(&smollm2());
    worker.begin(&Request::Measure(Measure {
        repetitions: 1,
        ..test(256, 0, 0)
    }));
    // It went back to sleep when it had handed the word on.
    std::thread::sleep(Duration::from_millis(50));
    let before = wakes(worker.child.id(), "requests");
    assert!(matches!(worker.hear(), Event::Sample(_)));
    assert_eq!(wakes(worker.child.id(), "requests"), before);
}

/// Context switches of the threads of that name.
#[cfg(target_os = "linux")]
fn wakes(process: u32, thread: &str) -> Vec<u64> {
    let mut counts = Vec::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).expect("Linux tells of its tasks") {
        let status = fs::read_to_string(
            task.expect("Linux tells of its tasks")
                .path()
                .join("status"),
        )
        .expect("Linux tells of its tasks");
        if status.contains(&format!("Name:\t{thread}\n")) {
            let counter = |name: &str| -> Option<u64> {
                status
                    .lines()
                    .find_map(|line| line.strip_prefix(name))?
                    .trim()
                    .parse()
                    .ok()
            };
            counts.push(counter("voluntary_ctxt_switches:").expect("Linux tells of its tasks"));
        }
    }
    assert!(!counts.is_empty(), "there is a thread named {thread}");
    counts
}
