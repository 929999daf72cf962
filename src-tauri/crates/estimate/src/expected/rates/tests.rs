//! Readings made up for a hand to follow.

use super::*;
use crate::{BandwidthReading, BytesPerSecond};
use TensorType::{F16, Q4K, Q6K, Q8_0};

fn calibration(kernels: &[(Kernel, f64)]) -> Calibration {
    let read = |mib: u64, gb_s: u64| BandwidthReading {
        buffer: Bytes::mib(mib),
        rate: BytesPerSecond(gb_s * 1_000_000_000),
    };
    Calibration {
        id: "0".into(),
        at: "2026-12-01T00:00:00Z".into(),
        backend: "CPU".into(),
        variant: "zen4".into(),
        threads: 2,
        build: 11434,
        ubatch: 512,
        last_level_cache: Some(Bytes::mib(32)),
        // 0.025, 0.05 and 0.1 ns a byte.
        reads: vec![read(8, 40), read(32, 20), read(128, 10)],
        kernels: kernels
            .iter()
            .map(|(kernel, ns)| KernelReading {
                kernel: *kernel,
                ns: *ns,
                spread_ns: 0.0,
                repacked: false,
            })
            .collect(),
        step_ns: None,
    }
}

fn matrix(tensor_type: TensorType, inner: u32, rows: u32, columns: u32, set: u64) -> Kernel {
    Kernel::Matrix {
        tensor_type,
        inner,
        rows,
        columns,
        set_bytes: set << 20,
    }
}

/// Q8_0: a matrix of 1,024 x 1,024 has 1,114,112 bytes. It takes 50,000 ns from the cache and
/// 161,411.2 ns from memory; 32 x 32 (1,088 bytes) takes 2,000.
fn vectors() -> Vec<(Kernel, f64)> {
    vec![
        (matrix(Q8_0, 1024, 1024, 1, 8), 50_000.0),
        (matrix(Q8_0, 1024, 1024, 1, 128), 161_411.2),
        (matrix(Q8_0, 32, 32, 1, 0), 2_000.0),
    ]
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.002
}

#[test]
fn a_vector_takes_its_bytes_and_a_beginning() {
    let calibration = calibration(&vectors());
    // Far: (161,411.2 - begin) / 1,114,112; begin is 2,000 less the bytes of the small one:
    // 1,088 x 50,000 / 1,114,112 = 48.8, so 1,951.2.
    let far = Rates::new(&calibration, Bytes::mib(128));
    let (ns, basis) = far.matrix(Q8_0, 1024, 2048, 1).unwrap();
    // 2 x (161,411.2 - 1,951.2) + 1,951.2
    assert!(near(ns, 320_871.2), "{ns}");
    assert_eq!(basis, TermBasis::Measured);
    let close = Rates::new(&calibration, Bytes::mib(4));
    let (ns, _) = close.matrix(Q8_0, 1024, 2048, 1).unwrap();
    // 2 x (50,000 - 1,951.2) + 1,951.2
    assert!(near(ns, 98_048.8), "{ns}");
}

#[test]
fn between_cache_and_memory_the_read_speed_decides() {
    let calibration = calibration(&vectors());
    // 32 MiB are read at 0.05 ns a byte: a third of the way from 0.025 to 0.1.
    let third = distance(&calibration, Bytes::mib(32));
    assert!((third - 1.0 / 3.0).abs() < 1e-9, "{third}");
    // 64 MiB lie half way (by their ratio) to 128: 0.075, two thirds.
    let two_thirds = distance(&calibration, Bytes::mib(64));
    assert!((two_thirds - 2.0 / 3.0).abs() < 1e-9, "{two_thirds}");
    assert_eq!(distance(&calibration, Bytes::gib(1)), 1.0);
    assert_eq!(distance(&calibration, Bytes::mib(1)), 0.0);
}

#[test]
fn products_follow_the_length_of_their_rows() {
    let mut kernels = vectors();
    // 512 columns of 1,024 rows: 524,288 elements, at 10 and 34 ns each, beginning apart.
    kernels.push((matrix(Q8_0, 512, 1024, 512, 8), 10.0 * 524_288.0 + 1_951.2));
    kernels.push((matrix(Q8_0, 2048, 1024, 512, 8), 34.0 * 524_288.0 + 1_951.2));
    let calibration = calibration(&kernels);
    let rates = Rates::new(&calibration, Bytes::mib(4));
    // 2 + 1024 / 64 = 18 ns an element.
    let (ns, basis) = rates.matrix(Q8_0, 1024, 1024, 512).unwrap();
    assert!(near(ns, 18.0 * 524_288.0), "{ns}");
    assert_eq!(basis, TermBasis::Measured);
}

#[test]
fn a_type_that_was_not_measured_costs_what_the_nearest_does_and_says_so() {
    let mut kernels = vectors();
    kernels.push((matrix(F16, 1024, 1024, 1, 128), 400_000.0));
    let calibration = calibration(&kernels);
    let rates = Rates::new(&calibration, Bytes::mib(128));
    // Q6_K has 6.6 bits a weight, Q8_0 8.5 and F16 16: Q8_0 is nearer, and a weight costs as much.
    let (ns, basis) = rates.matrix(Q6K, 1024, 1024, 1).unwrap();
    assert!(near(ns, 161_411.2), "{ns}");
    assert_eq!(basis, TermBasis::Resembling);
    assert!(
        rates.matrix(Q4K, 1024, 1024, 512).is_none(),
        "no product was measured"
    );
}

#[test]
fn attention_lies_between_two_depths_and_two_heads() {
    let attention = |head, cells, ns| {
        let kernel = Kernel::Attention {
            heads: 8,
            kv_heads: 2,
            head,
            type_k: KvType::F16,
            type_v: KvType::F16,
            flash: true,
            cells,
            columns: 1,
            set_bytes: 0,
        };
        (kernel, ns)
    };
    // Each head of 64 takes 1,000 ns and 2 ns for each token; of 128 1,000 and 4.
    let calibration = calibration(&[
        attention(64, 1000, 8.0 * 3_000.0),
        attention(64, 2000, 8.0 * 5_000.0),
        attention(128, 1000, 8.0 * 5_000.0),
        attention(128, 2000, 8.0 * 9_000.0),
    ]);
    let rates = Rates::new(&calibration, Bytes::mib(4));
    let mut asked = Attention {
        head: 96.0,
        ..decoding(16, 3000.0)
    };
    // 16 x (1,000 + 3 x 3,000)
    let (ns, basis) = rates.attention(&asked).unwrap();
    assert!(near(ns, 160_000.0), "{ns}");
    assert_eq!(basis, TermBasis::Measured);
    asked.head = 256.0;
    // Twice the largest measured: 16 x 2 x (1,000 + 4 x 3,000).
    assert!(near(rates.attention(&asked).unwrap().0, 416_000.0));
    asked.type_k = KvType::Q8_0;
    assert_eq!(rates.attention(&asked).unwrap().1, TermBasis::Resembling);
}

/// A token that looks back in a cache that is full.
fn decoding(heads: u64, seen: f64) -> Attention {
    Attention {
        heads,
        head: 64.0,
        type_k: KvType::F16,
        flash: true,
        columns: 1,
        users: 1,
        seen,
        held: seen,
        slides: false,
    }
}

#[test]
fn cells_that_are_not_seen_leave_a_thread_idle() {
    // 1,089 of 1,280 cells: 640 for one thread and 449 for the other.
    assert_eq!(busiest_cells(1089.0, 1280.0, 2, false), 640.0);
    // A window of half the cells, anywhere: from all in one half to a quarter in each, 3/4 of them
    // in the mean.
    let sliding = busiest_cells(512.0, 1024.0, 2, true);
    assert!((sliding / 384.0 - 1.0).abs() < 0.01, "{sliding}");
    assert_eq!(busiest_cells(1024.0, 1024.0, 2, true), 512.0);

    let uneven = |asked: &Attention| asked.unevenness(2);
    let deep = Attention {
        held: 1280.0,
        ..decoding(9, 1089.0)
    };
    assert!(near(uneven(&deep), 1280.0 / 1089.0));
    // Fewer cells, a quantized cache, or several sequences: heads are shared. Nine: five against
    // four and a half; of two sequences 18, in chunks of three.
    let shallow = Attention {
        held: 256.0,
        ..decoding(9, 65.0)
    };
    assert!(near(uneven(&shallow), 5.0 / 4.5));
    let quantized = Attention {
        type_k: KvType::Q8_0,
        ..deep
    };
    assert!(near(uneven(&quantized), 5.0 / 4.5));
    assert!(near(uneven(&Attention { users: 2, ..deep }), 1.0));
}

#[test]
fn the_busiest_thread_decides() {
    // Nine heads for two threads: chunks of two, and one left over: 5 against 4.
    assert_eq!(longest_share(9, 2, 2), 5);
    assert_eq!(longest_share(8, 1, 2), 4);
    assert_eq!(longest_share(3, 1, 2), 2);
    assert_eq!(longest_share(12, 2, 4), 4);
}

#[test]
fn tokens_touch_experts_between_them() {
    assert!((touched(8, 64, 1) - 8.0).abs() < 1e-9);
    // 64 x (1 - (7/8)^2) = 15
    assert!((touched(8, 64, 2) - 15.0).abs() < 1e-9);
    assert!(touched(8, 64, 512) > 63.999);
}

#[test]
fn without_readings_nothing_is_expected() {
    let calibration = calibration(&[]);
    let rates = Rates::new(&calibration, Bytes::mib(4));
    assert!(rates.matrix(Q8_0, 1024, 1024, 1).is_none());
    assert!(rates.rest(Rest::default(), 1).is_none());
}
