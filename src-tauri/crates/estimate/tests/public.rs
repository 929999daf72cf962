//! Published measurements: every row understood, and none faster than theory allows.
#![allow(clippy::unwrap_used, clippy::panic)] // as in any test

use std::collections::BTreeMap;

use twospeed_estimate::device;
use twospeed_estimate::public::{self, List, Phase, Published};

fn rows() -> &'static [Published] {
    public::rows()
}

fn name(row: &Published) -> String {
    format!(
        "{:?} line {}: {} {} {}",
        row.list, row.line, row.model, row.quantization, row.test_name
    )
}

#[test]
fn every_row_of_both_lists_is_there() {
    let of = |list| {
        rows()
            .iter()
            .filter(|row| row.list == list)
            .collect::<Vec<_>>()
    };
    let measured = of(List::Measured);
    // Counted by the lines of the file, which has a header and no line breaks within fields.
    let lines = include_str!("../data/measured_public.csv").lines().count() - 1;
    assert_eq!((measured.len(), lines), (281, 281));
    assert_eq!(measured.first().unwrap().line, 2);
    assert_eq!(measured.last().unwrap().line, 282);
    // Of the article, the rows whose unit is a speed, and the two prompt times.
    let article = include_str!("../data/article.csv");
    let speeds = article
        .lines()
        .filter(|line| line.contains(",tok/s,") || line.contains(",s,"));
    assert_eq!(of(List::Article).len(), speeds.count());
    assert_eq!(of(List::Article).len(), 13);
    for row in rows() {
        assert!(
            row.speed.0 > 0.0 && row.speed.0.is_finite(),
            "{}",
            name(row)
        );
        assert!(
            !row.source.is_empty() && !row.device.is_empty(),
            "{}",
            name(row)
        );
    }
}

#[test]
fn devices_are_presets_or_named_as_none() {
    let mut none = Vec::new();
    for row in rows() {
        let Some(preset) = row.preset else {
            if !none.contains(&row.device.as_str()) {
                none.push(&row.device);
            }
            continue;
        };
        let device = device::find(preset).unwrap();
        assert_eq!(device.name, preset);
        assert_eq!(row.device(), Some(device));
        // The source's bandwidth is the preset's, to the rounding of 936 and 936.2 GB/s.
        let (theirs, ours) = (row.bandwidth.unwrap().gb_s(), device.bandwidth.gb_s());
        assert!(
            (theirs / ours - 1.0).abs() < 0.001,
            "{}: {theirs}, {ours}",
            name(row)
        );
    }
    assert_eq!(none, ["Radeon 890M", "unstated CPU"]);
}

/// Models of rows whose shape is not in the list, with the reason.
const WITHOUT_SHAPE: [(&str, &str); 5] = [
    (
        "deepseek2 16B (V2-Lite)",
        "one compressed key for all heads: the list has plain heads only",
    ),
    (
        "llama 3B",
        "the source does not say which of several models of that size",
    ),
    ("qwen35moe 35B.A3B", "its configuration is not certain"),
    (
        "lfm2moe 24B.A2B (hybrid)",
        "recurrent layers: the list has none",
    ),
    (
        "lfm2moe 8B.A1B (hybrid)",
        "recurrent layers: the list has none",
    ),
];

#[test]
fn the_shape_of_every_model_is_known_or_the_reason_why_not() {
    let mut without: Vec<&str> = Vec::new();
    for row in rows() {
        let known = public::shape_of(&row.model).is_some();
        let reasoned = WITHOUT_SHAPE.iter().any(|(model, _)| *model == row.model);
        assert!(known != reasoned, "{}", name(row));
        if !known && !without.contains(&row.model.as_str()) {
            without.push(&row.model);
        }
    }
    assert_eq!(without.len(), WITHOUT_SHAPE.len());
    for shape in public::shapes() {
        let used = rows()
            .iter()
            .any(|row| shape.models.split(';').any(|name| name == row.model));
        assert!(used && !shape.source.is_empty(), "{}", shape.models);
    }
}

#[test]
fn shapes_have_as_many_parameters_as_their_measurements_say() {
    // The sources print what llama.cpp counts, to two decimals; norms and biases are not in the
    // shapes (gpt-oss has the most: 0.04 %).
    let mut checked = 0;
    for row in rows() {
        let (Some(shape), Some(billions)) = (public::shape_of(&row.model), row.parameters_b) else {
            continue;
        };
        let computed = shape.parameters() as f64 / 1e9;
        let off = (computed - billions).abs();
        assert!(
            off <= 0.006 + 0.0005 * billions,
            "{}: {computed}",
            name(row)
        );
        checked += 1;
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn files_are_as_large_as_their_shape_and_quantization_say() {
    // Each file's bits per weight, from its size and the parameters of its shape: between that of
    // its main type less 3 % (sizes are rounded, some to two digits) and 25 % more (some tensors are kept finer).
    for row in rows() {
        let (Some(shape), Some(size)) = (public::shape_of(&row.model), row.size) else {
            continue;
        };
        let bits = 8.0 * size.0 as f64 / shape.parameters() as f64;
        let least = match row.quantization.split(' ').next().unwrap() {
            "F16" => 16.0,
            "Q8_0" => 8.5,
            "Q6_K" => 6.5625,
            "Q5_K_M" | "Q5_K_S" => 5.5,
            "Q4_1" => 5.0,
            "Q4_0" | "Q4_K_M" | "Q4_K_S" => 4.5,
            "MXFP4" => 4.25,
            other => panic!("{other} in {}", name(row)),
        };
        assert!(
            (0.97 * least..=1.25 * least).contains(&bits),
            "{}: {bits}",
            name(row)
        );
    }
}

/// Decode rows that may be faster than bandwidth allows, with the reason. None is.
const BEYOND_THE_CEILING: [(List, usize, &str); 0] = [];

#[test]
fn no_published_decode_is_faster_than_its_bandwidth_allows() {
    let (mut checked, mut unknown) = (0, Vec::new());
    let mut best = BTreeMap::new();
    for row in rows().iter().filter(|row| row.test.phase == Phase::Decode) {
        let Some(ceiling) = row.ceiling() else {
            unknown.push((row.list, row.line));
            continue;
        };
        checked += 1;
        let share = row.speed.0 / ceiling.0;
        let reasoned = BEYOND_THE_CEILING
            .iter()
            .any(|(list, line, _)| (*list, *line) == (row.list, row.line));
        assert_eq!(
            share > 1.0,
            reasoned,
            "{}: {share:.2} of {ceiling}",
            name(row)
        );
        if row.whole_on_device() {
            let most = best.entry(row.preset.unwrap()).or_insert(0.0_f64);
            *most = most.max(share);
        }
    }
    println!(
        "{checked} decode rows are below their ceiling; the most each device reached: {best:.2?}"
    );
    // What is not checked: llama 3B and DeepSeek V2 Lite (no shape), the Radeon 890M (no bandwidth),
    // three of "4-bit" (no type), the RTX 2060 beside its host (no shape).
    let lines: Vec<usize> = unknown.iter().map(|(_, line)| *line).collect();
    assert_eq!(lines, [234, 236, 258, 276, 277, 278, 280]);
    assert!(unknown.iter().all(|(list, _)| *list == List::Measured));
}

#[test]
fn rows_whose_sources_leave_something_open_are_weak() {
    let weak = |line: usize| rows().iter().find(|row| row.line == line).unwrap().weak;
    for (line, why) in [
        (149, "the length of the prompt is not said"),
        (207, "a fork of the engine"),
        (213, "which device is inferred"),
        (229, "the quantization is not in the source"),
        (247, "quoted elsewhere"),
        (261, "the power mode is unstated"),
        (276, "the quantization is unstated"),
    ] {
        assert!(weak(line), "line {line}: {why}");
    }
    for (line, why) in [
        (3, "the maintainers' own"),
        (148, "about 1,024 tokens"),
        (197, "complete"),
    ] {
        assert!(!weak(line), "line {line}: {why}");
    }
}
