//! Single operations, timed by the real worker.

#![allow(clippy::panic)]

use std::time::{Duration, Instant};

use twospeed_engine::protocol::*;
use twospeed_gguf::TensorType;
use twospeed_tests::worker::Worker;

/// Tests run side by side: a thread each, and a time that says little but comes soon.
fn calibrate(kernels: Vec<Kernel>) -> Request {
    Request::Calibrate(Calibrate {
        n_threads: 1,
        duration_ns: 5_000_000,
        kernels,
    })
}

fn matrix(tensor_type: &str, inner: u32, rows: u32, columns: u32) -> Kernel {
    Kernel::Matrix {
        tensor_type: tensor_type.into(),
        inner,
        rows,
        columns,
        set_bytes: 0,
    }
}

fn experts(tensor_type: &str, used: u32, columns: u32) -> Kernel {
    Kernel::Experts {
        tensor_type: tensor_type.into(),
        inner: 512,
        rows: 256,
        experts: 16,
        used,
        columns,
        set_bytes: 0,
    }
}

fn attention(type_k: &str, type_v: &str, flash: bool, cells: u32, columns: u32) -> Kernel {
    Kernel::Attention {
        heads: 8,
        kv_heads: 2,
        head: 64,
        type_k: type_k.into(),
        type_v: type_v.into(),
        flash,
        cells,
        columns,
        set_bytes: 0,
    }
}

fn layer(columns: u32) -> Kernel {
    Kernel::Layer {
        embedding: 512,
        feed_forward: 1536,
        heads: 8,
        kv_heads: 2,
        head: 64,
        columns,
    }
}

#[track_caller]
fn readings(worker: &mut Worker, kernels: Vec<Kernel>) -> Vec<KernelReading> {
    let count = kernels.len();
    match worker.serve(&calibrate(kernels)).pop() {
        Some(Event::Calibrated { readings }) => {
            assert_eq!(readings.len(), count, "one for each");
            readings
        }
        other => panic!("{other:?}"),
    }
}

/// The time, or the panic of a test.
#[track_caller]
fn ns(reading: &KernelReading) -> f64 {
    let ns = reading.ns.unwrap_or_else(|| panic!("{reading:?}"));
    let spread = reading.spread_ns.expect("a time has a spread");
    assert!(ns.is_finite() && ns > 0.0, "{reading:?}");
    assert!(spread.is_finite() && spread >= 0.0, "{reading:?}");
    assert_eq!(reading.refused, None);
    ns
}

#[track_caller]
fn sentence(reading: &KernelReading) -> &str {
    assert_eq!((reading.ns, reading.spread_ns), (None, None), "{reading:?}");
    let sentence = reading.refused.as_deref().expect("a sentence");
    assert!(sentence.ends_with('.'), "{sentence}");
    sentence
}

#[test]
fn every_type_takes_its_time_or_says_why_not() {
    let mut worker = Worker::start(&[]);
    let types = || TensorType::ALL.iter().map(|known| known.name());
    // Types that ggml has no product for (`vec_dot` in ggml-cpu.c).
    let without = ["I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K"];
    for columns in [1, 8] {
        let plain: Vec<Kernel> = types()
            .map(|name| matrix(name, 512, 256, columns))
            .collect();
        let chosen: Vec<Kernel> = types().map(|name| experts(name, 2, columns)).collect();
        for kernels in [plain, chosen] {
            let said = readings(&mut worker, kernels);
            for (name, reading) in types().zip(&said) {
                if without.contains(&name) {
                    assert!(sentence(reading).contains(name), "{reading:?}");
                } else {
                    ns(reading);
                }
            }
        }
    }
}

#[test]
fn more_to_do_takes_longer() {
    let mut worker = Worker::start(&[]);
    let said = readings(
        &mut worker,
        vec![
            matrix("q4_K", 1024, 1024, 1),
            matrix("q4_K", 1024, 1024, 64),
            experts("q4_K", 1, 1),
            experts("q4_K", 16, 1),
            attention("f16", "f16", true, 256, 1),
            attention("f16", "f16", true, 4096, 1),
            attention("f16", "f16", false, 256, 1),
            attention("f16", "f16", false, 4096, 1),
            layer(1),
            layer(64),
        ],
    );
    for pair in said.chunks_exact(2) {
        // A sixteenth of the work or less: twice as long, whatever runs beside.
        assert!(ns(&pair[1]) > 2.0 * ns(&pair[0]), "{pair:?}");
    }
}

#[test]
fn a_set_that_is_gone_through_is_read() {
    let mut worker = Worker::start(&[]);
    let said = readings(
        &mut worker,
        vec![Kernel::Matrix {
            tensor_type: "q8_0".into(),
            inner: 2048,
            rows: 2048,
            columns: 1,
            set_bytes: 64 << 20,
        }],
    );
    // 2048 x 64 blocks of 34 bytes: no memory gives a terabyte a second to one thread.
    let bytes_per_second = f64::from(2048 * 64 * 34) / ns(&said[0]) * 1e9;
    assert!(
        (1e8..1e12).contains(&bytes_per_second),
        "{bytes_per_second}"
    );
}

#[test]
fn caches_of_every_type_are_attended_to() {
    let mut worker = Worker::start(&[]);
    let names = [
        "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl",
    ];
    let mut kernels = Vec::new();
    for name in names {
        for columns in [1, 40] {
            kernels.push(attention(name, name, true, 512, columns));
            kernels.push(attention(name, "f16", true, 512, columns));
            kernels.push(attention(name, "f16", false, 512, columns));
        }
    }
    for reading in readings(&mut worker, kernels) {
        ns(&reading);
        assert!(!reading.repacked);
    }
}

#[test]
fn what_the_engine_cannot_do_is_refused_and_the_rest_is_done() {
    let mut worker = Worker::start(&[]);
    let mut narrow = attention("f16", "f16", true, 256, 1);
    if let Kernel::Attention { kv_heads, .. } = &mut narrow {
        *kv_heads = 3;
    }
    let mut odd = layer(1);
    if let Kernel::Layer { head, .. } = &mut odd {
        *head = 63;
    }
    let refused = [
        (matrix("q4_K", 300, 8, 1), "multiple of 256"),
        (matrix("q4_K", 0, 8, 1), "at least 1"),
        (matrix("q4_K", 256, 0, 1), "at least 1"),
        (matrix("q4_K", 256, 8, 0), "at least 1"),
        (matrix("q4_K", 1 << 30, 1 << 30, 1), "memory"),
        (matrix("f32", 1 << 16, 1 << 16, u32::MAX), "counts to"),
        (matrix("f32", 1 << 16, 8, i32::MAX as u32), "memory"),
        (experts("q8_0", 17, 1), "16 experts"),
        (experts("q8_0", 0, 1), "at least 1"),
        (attention("f16", "q8_0", false, 256, 1), "flash attention"),
        (attention("f16", "f16", true, 256, 257), "256 cells"),
        (attention("f16", "f16", true, 0, 0), "at least 1"),
        (
            attention("f16", "f16", true, i32::MAX as u32, 1 << 20),
            "memory",
        ),
        (narrow, "share"),
        (odd, "even number"),
        (layer(0), "at least 1"),
        (layer(u32::MAX), "counts to"),
    ];
    let mut kernels: Vec<Kernel> = refused.iter().map(|(kernel, _)| kernel.clone()).collect();
    kernels.push(matrix("q4_K", 256, 8, 1));
    let said = readings(&mut worker, kernels);
    for ((kernel, names), reading) in refused.iter().zip(&said) {
        let sentence = sentence(reading);
        assert!(sentence.contains(names), "{kernel:?}: {sentence}");
    }
    ns(said.last().unwrap());
}

#[test]
fn names_and_settings_that_mean_nothing_fail_at_once() {
    let mut worker = Worker::start(&[]);
    let good = matrix("q4_K", 256, 8, 1);
    for (kernel, names) in [
        (matrix("q4_k_m", 256, 8, 1), "q4_k_m"),
        (experts("", 1, 1), "tensor_type"),
        (attention("q3_k", "f16", true, 256, 1), "type_k"),
        (attention("f16", "q3_k", true, 256, 1), "type_v"),
    ] {
        let request = calibrate(vec![good.clone(), kernel]);
        worker.refuses(&request, FailureCode::BadSetting, names);
    }
    for n_threads in [0, 513] {
        let request = Request::Calibrate(Calibrate {
            n_threads,
            duration_ns: 0,
            kernels: vec![good.clone()],
        });
        worker.refuses(&request, FailureCode::BadSetting, "n_threads");
    }
    assert_eq!(readings(&mut worker, Vec::new()), []);
}

#[test]
fn progress_is_said_after_each_but_the_last() {
    let mut worker = Worker::start(&[]);
    let kernels = vec![matrix("q4_0", 256, 64, 1); 3];
    let mut said = worker.serve(&calibrate(kernels));
    assert!(matches!(said.pop(), Some(Event::Calibrated { .. })));
    let expected: Vec<Event> = [1, 2]
        .map(|done| Event::CalibrateProgress { done, kernels: 3 })
        .into();
    assert_eq!(said, expected);
}

#[test]
fn cancel_stops_it_and_the_worker_takes_the_next() {
    let mut worker = Worker::start(&[]);
    worker.ask(&Request::Calibrate(Calibrate {
        n_threads: 1,
        duration_ns: 60_000_000_000,
        kernels: vec![matrix("q4_0", 4096, 4096, 64); 3],
    }));
    std::thread::sleep(Duration::from_millis(500));
    let asked = Instant::now();
    worker.ask(&Request::Cancel);
    assert_eq!(worker.closing(), Event::Cancelled);
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "{:?}",
        asked.elapsed()
    );
    ns(&readings(&mut worker, vec![layer(1)])[0]);
}
