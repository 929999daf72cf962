//! Titles say what the numbers show, and nothing that they do not.

mod inputs;

use inputs::{around, measured, phase, row};
use twospeed_chart::{Measured, Phase, Row, Speeds, finding};

/// Rows of one model: size in MB, prefill and decode with a deviation of 2 %.
fn rows(values: &[(f64, f64, f64)]) -> Speeds {
    let labels = ["Q4_0", "Q4_1", "Q8_0", "F16", "F32"];
    let of = |value: f64| only(around(value, 0.02 * value));
    Speeds {
        subject: "SmolLM2 135M".into(),
        rows: values
            .iter()
            .zip(labels)
            .map(|((mb, prefill, decode), label)| row(None, label, *mb, of(*prefill), of(*decode)))
            .collect(),
        ..Speeds::default()
    }
}

fn only(measured: Measured) -> Phase {
    Phase {
        measured: Some(measured),
        ..Phase::default()
    }
}

#[test]
fn one_run_compares_reading_and_writing() {
    let title = |prefill, decode| finding(&rows(&[(98.0, prefill, decode)]));
    assert_eq!(
        title(1_200.0, 100.0),
        "Reading is 12 times as fast as writing"
    );
    assert_eq!(
        title(280.0, 100.0),
        "Reading is 2.8 times as fast as writing"
    );
    assert_eq!(title(200.0, 100.0), "Reading is 2 times as fast as writing");
    assert_eq!(
        title(110.0, 100.0),
        "Reading is 10\u{a0}% faster than writing"
    );
    assert_eq!(title(50.0, 100.0), "Writing is 2 times as fast as reading");
}

#[test]
fn a_difference_within_the_spread_is_no_finding() {
    let title = finding(&rows(&[(98.0, 102.0, 100.0)]));
    assert_eq!(title, "Prefill and decode speed of SmolLM2 135M");
}

#[test]
fn without_a_known_spread_a_small_difference_is_no_finding() {
    let one = |value: f64| only(measured(&[value]));
    let title = |prefill: f64, decode: f64| {
        let mut input = rows(&[]);
        input.rows = vec![row(None, "Q4_0", 92.0, one(prefill), one(decode))];
        finding(&input)
    };
    assert_eq!(
        title(109.0, 100.0),
        "Prefill and decode speed of SmolLM2 135M"
    );
    assert_eq!(
        title(130.0, 100.0),
        "Reading is 1.3 times as fast as writing"
    );
}

#[test]
fn decode_slows_as_the_file_grows_and_prefill_does_not_follow() {
    let title = finding(&inputs::quantizations());
    assert_eq!(
        title,
        "Decode slows as the file grows; prefill does not follow size"
    );
}

#[test]
fn a_trend_does_not_depend_on_the_order_of_rows() {
    let mut input = inputs::quantizations();
    input.rows.reverse();
    assert_eq!(finding(&input), finding(&inputs::quantizations()));
}

#[test]
fn trends_of_both_speeds_combine() {
    let title = |values: &[(f64, f64, f64)]| finding(&rows(values));
    assert_eq!(
        title(&[
            (92.0, 600.0, 118.0),
            (145.0, 400.0, 80.0),
            (271.0, 250.0, 49.0)
        ]),
        "Both speeds fall as the file grows"
    );
    assert_eq!(
        title(&[
            (92.0, 400.0, 118.0),
            (145.0, 402.0, 80.0),
            (271.0, 398.0, 49.0)
        ]),
        "Decode slows as the file grows; prefill does not change clearly"
    );
    assert_eq!(
        title(&[
            (92.0, 300.0, 118.0),
            (145.0, 400.0, 80.0),
            (271.0, 500.0, 49.0)
        ]),
        "Decode slows as the file grows; prefill gets faster"
    );
    assert_eq!(
        title(&[
            (92.0, 600.0, 100.0),
            (145.0, 400.0, 101.0),
            (271.0, 250.0, 99.0)
        ]),
        "Prefill slows as the file grows; decode does not change clearly"
    );
}

#[test]
fn decode_alone_has_its_own_trend() {
    let mut input = inputs::quantizations();
    for row in &mut input.rows {
        row.prefill = Phase::default();
    }
    assert_eq!(finding(&input), "Decode slows as the file grows");
}

#[test]
fn without_sizes_there_is_no_trend_but_a_fastest() {
    let mut input = inputs::quantizations();
    for row in &mut input.rows {
        row.file_bytes = None;
    }
    assert_eq!(finding(&input), "Q4_0 reads and writes fastest");
}

#[test]
fn equal_sizes_make_no_trend() {
    let title = finding(&rows(&[
        (92.0, 400.0, 80.0),
        (92.0, 600.0, 60.0),
        (92.0, 300.0, 50.0),
    ]));
    assert_eq!(title, "Q4_1 reads fastest; Q4_0 writes fastest");
}

#[test]
fn a_fastest_that_is_not_clear_is_not_named() {
    let title = finding(&rows(&[
        (92.0, 400.0, 80.0),
        (92.0, 401.0, 81.0),
        (92.0, 300.0, 50.0),
    ]));
    assert_eq!(title, "Prefill and decode speed of SmolLM2 135M");
}

#[test]
fn two_runs_are_compared_by_name() {
    let title = |a, b| finding(&rows(&[a, b]));
    assert_eq!(
        title((92.0, 600.0, 130.0), (98.0, 300.0, 100.0)),
        "Q4_0 reads 2 times as fast as Q4_1 and writes 1.3 times as fast"
    );
    assert_eq!(
        title((92.0, 600.0, 110.0), (98.0, 300.0, 100.0)),
        "Q4_0 reads 2 times as fast as Q4_1 and writes 10\u{a0}% faster"
    );
    assert_eq!(
        title((92.0, 300.0, 130.0), (98.0, 600.0, 100.0)),
        "Q4_1 reads faster; Q4_0 writes faster"
    );
    assert_eq!(
        title((92.0, 600.0, 100.0), (98.0, 300.0, 101.0)),
        "Q4_0 reads 2 times as fast as Q4_1; writing does not differ clearly"
    );
    assert_eq!(
        title((92.0, 300.0, 150.0), (98.0, 301.0, 100.0)),
        "Q4_0 writes 1.5 times as fast as Q4_1; reading does not differ clearly"
    );
    assert_eq!(
        title((92.0, 300.0, 100.0), (98.0, 301.0, 101.0)),
        "Prefill and decode speed of SmolLM2 135M"
    );
}

#[test]
fn a_speed_of_zero_makes_no_endless_ratio() {
    let title = finding(&rows(&[(92.0, 300.0, 100.0), (98.0, 0.0, 100.0)]));
    assert_eq!(
        title,
        "Q4_0 reads far faster than Q4_1; writing does not differ clearly"
    );
}

#[test]
fn models_are_named_where_each_has_one_run() {
    let mut input = rows(&[(92.0, 600.0, 130.0), (98.0, 300.0, 100.0)]);
    input.rows[0].group = Some("SmolLM2 135M".into());
    input.rows[1].group = Some("Gemma 3 270M".into());
    assert_eq!(
        finding(&input),
        "SmolLM2 135M reads 2 times as fast as Gemma 3 270M and writes 1.3 times as fast"
    );
}

#[test]
fn without_anything_measured_the_subject_is_named() {
    let mut input = Speeds {
        rows: vec![Row::new("Q4_0")],
        ..Speeds::default()
    };
    assert_eq!(finding(&input), "Prefill and decode speed of Q4_0");
    input.rows[0].decode = phase(measured(&[50.0]), (1.0, 2.0), 3.0);
    assert_eq!(finding(&input), "Decode speed of Q4_0");
    input.rows.push(Row::new("Q8_0"));
    assert_eq!(finding(&input), "Decode speed of 2 runs");
    input.rows[0].group = Some("A".into());
    input.rows[1].group = Some("B".into());
    assert_eq!(finding(&input), "Decode speed of 2 models");
    input.subject = "the face-off".into();
    assert_eq!(finding(&input), "Decode speed of the face-off");
}

#[test]
fn overlays_never_change_the_finding() {
    let mut input = inputs::quantizations();
    let before = finding(&input);
    input.overlays.ceiling = false;
    input.overlays.expected = false;
    assert_eq!(finding(&input), before);
}

#[test]
fn a_name_that_two_rows_share_says_nothing_of_either() {
    let twice = |values: &[(f64, f64, f64)]| {
        let mut input = rows(values);
        for row in &mut input.rows {
            row.label = "Q4_0".into();
            row.file_bytes = Some(92_000_000);
        }
        finding(&input)
    };
    let plain = "Prefill and decode speed of SmolLM2 135M";
    let two = [(92.0, 100.0, 20.0), (92.0, 200.0, 40.0)];
    assert_eq!(twice(&two), plain, "not: Q4_0 reads faster than Q4_0");
    let three = [
        (92.0, 100.0, 20.0),
        (92.0, 200.0, 40.0),
        (92.0, 300.0, 60.0),
    ];
    assert_eq!(twice(&three), plain);
}
