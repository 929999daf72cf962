//! What is expected of results beside what was measured: overlays, figures and explanations.

use std::fs;

use twospeed_engine::fake;
use twospeed_estimate::explain::Says;
use twospeed_estimate::{Bytes, Calibration, Kernel, KernelReading, KvType};
use twospeed_gguf::TensorType;
use twospeed_measure::platform;
use twospeed_views::compare::*;

use crate::Window;
use crate::compare::{asked, history, measured};

/// A machine on which a byte takes 0.1 ns to read and 1,000 operations take 2 ns; of 2 threads.
fn calibration(threads: u32) -> Calibration {
    let mut kernels = Vec::new();
    for (tensor_type, bytes) in [
        (TensorType::Q8_0, 34.0 / 32.0),
        (TensorType::F16, 2.0),
        (TensorType::F32, 4.0),
    ] {
        for inner in [1024_u32, 2048] {
            let elements = f64::from(inner) * 2048.0;
            for columns in [1, 512] {
                for set_bytes in [1 << 24, 1 << 30] {
                    let kernel = Kernel::Matrix {
                        tensor_type,
                        inner,
                        rows: 2048,
                        columns,
                        set_bytes,
                    };
                    let ns = match columns {
                        1 => 0.1 * elements * bytes,
                        columns => 0.002 * 2.0 * elements * f64::from(columns),
                    };
                    kernels.push((kernel, ns));
                }
            }
        }
    }
    for cells in [256, 4096] {
        for columns in [1, 512] {
            let kernel = Kernel::Attention {
                heads: 8,
                kv_heads: 8,
                head: 64,
                type_k: KvType::F16,
                type_v: KvType::F16,
                flash: true,
                cells,
                columns,
                set_bytes: 1 << 24,
            };
            kernels.push((kernel, 100.0 * f64::from(cells) * f64::from(columns)));
        }
    }
    for embedding in [512, 1024] {
        for columns in [1, 512] {
            let kernel = Kernel::Layer {
                embedding,
                feed_forward: 4 * embedding,
                heads: 8,
                kv_heads: 8,
                head: 64,
                columns,
            };
            kernels.push((kernel, 20_000.0 * f64::from(columns)));
        }
    }
    let hello = fake::hello();
    Calibration {
        id: uuid::Uuid::now_v7().to_string(),
        at: "2026-12-01T10:00:00Z".into(),
        backend: hello.backends,
        variant: hello.variant.name,
        threads,
        build: hello.engine.build_number,
        ubatch: 512,
        last_level_cache: Some(Bytes::mib(64)),
        reads: Vec::new(),
        kernels: kernels
            .into_iter()
            .map(|(kernel, ns)| KernelReading {
                kernel,
                ns,
                spread_ns: 0.0,
                repacked: false,
            })
            .collect(),
        step_ns: Some(50_000.0),
    }
}

async fn calibrate(window: &Window, threads: u32) {
    let history = history(window).await;
    let machine = platform::machine();
    let kept = history
        .keep_calibration(&machine, &calibration(threads))
        .await;
    kept.unwrap();
}

async fn drawn(window: &Window, request: FigureRequest) -> FigureView {
    window.app.figure(request).await.unwrap()
}

fn says(view: &FigureView, wanted: fn(&Says) -> bool) -> bool {
    let mut all = view.statements.iter();
    all.any(|said| matches!(said, Statement::Explained { says, .. } if wanted(says)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_calibration_nothing_is_expected_and_that_is_said() {
    let (window, results) = measured().await;
    assert!(!window.app.results().await.unwrap().calibrated);
    let view = drawn(&window, asked(&results, None)).await;
    assert_eq!(view.unexpected, Some(Unexpected::NotCalibrated));
    assert!(!view.has_expected);
    assert!(!says(&view, |says| matches!(says, Says::TokenTime { .. })));
    // What the file says holds on any machine.
    assert!(says(&view, |says| matches!(says, Says::KvGrowth { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_calibrated_machine_a_result_stands_beside_what_is_expected() {
    let (window, results) = measured().await;
    calibrate(&window, 2).await;
    assert!(window.app.results().await.unwrap().calibrated);
    let plain = drawn(&window, asked(&results, None)).await;
    assert_eq!(plain.unexpected, None);
    assert!(plain.has_expected);
    assert!(says(&plain, |says| matches!(says, Says::TokenTime { .. })));
    assert!(says(&plain, |says| matches!(says, Says::Judged { .. })));
    let beside = FigureRequest {
        expected: true,
        ..asked(&results, None)
    };
    let with_expected = drawn(&window, beside.clone()).await;
    assert_ne!(with_expected.svg, plain.svg);
    let broken_down = FigureRequest {
        breakdown: true,
        ..beside
    };
    assert_ne!(drawn(&window, broken_down).await.svg, with_expected.svg);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_of_what_is_expected_show_the_results_of_speeds() {
    let (window, results) = measured().await;
    calibrate(&window, 2).await;
    for figure in [
        FigureName::Roofline,
        FigureName::Breakdown,
        FigureName::Estimate,
    ] {
        let request = FigureRequest {
            figure,
            ..asked(&results, Some(&results[1]))
        };
        let view = drawn(&window, request).await;
        assert_eq!(view.row_results, results, "{figure:?}");
        assert_eq!(view.data.rows.len(), results.len(), "{figure:?}");
        assert!(
            says(&view, |says| matches!(says, Says::TokenTime { .. })),
            "{figure:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_calibration_of_other_threads_is_said_and_not_drawn() {
    let (window, results) = measured().await;
    calibrate(&window, 4).await;
    let view = drawn(&window, asked(&results, None)).await;
    let Some(Unexpected::OtherCalibration { sentence }) = &view.unexpected else {
        panic!("{:?}", view.unexpected);
    };
    assert!(
        sentence.contains("2 threads") && sentence.ends_with('.'),
        "{sentence}"
    );
    assert!(!view.has_expected);
    // What it would be with those threads is said with that.
    assert!(says(&view, |says| matches!(
        says,
        Says::Threads {
            ran: 2,
            calibrated: 4
        } | Says::Judged { .. }
    )));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_gone_is_said_and_one_that_moved_is_found() {
    let (window, results) = measured().await;
    calibrate(&window, 2).await;
    let file = window.path("models").join("a.Q8_0.gguf");
    let moved = window.path("models").join("moved.gguf");
    fs::rename(&file, &moved).unwrap();
    let small = results[..1].to_vec();
    // It is looked for by its content among the models of the last scan.
    window.app.scan().await.unwrap();
    window.scanned().await;
    let found = window.until_expected(&small).await;
    assert_eq!(found.unexpected, None);
    fs::remove_file(&moved).unwrap();
    let gone = drawn(&window, asked(&small, None)).await;
    assert!(
        matches!(&gone.unexpected, Some(Unexpected::FileGone { .. })),
        "{:?}",
        gone.unexpected
    );
    assert!(!says(&gone, |says| matches!(says, Says::KvGrowth { .. })));
}

impl Window {
    /// The figure of results once their files have been looked at, which goes on in the background.
    async fn until_expected(&self, results: &[String]) -> FigureView {
        for _ in 0..100 {
            let view = drawn(self, asked(results, None)).await;
            if view.unexpected.is_none() {
                return view;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the file was not found by its content");
    }
}
