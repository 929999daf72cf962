//! The figures of what is expected: what they say, and where.

// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::panic)]

mod inputs;
mod picture;

use inputs::predictions;
use proptest::prelude::*;
use twospeed_chart::{
    Breakdown, BreakdownRow, Cause, Data, Error, Estimates, Expected, Figure, Frame, MARGIN, Mark,
    MarkKind, Measured, Name, Roofline, RooflineSeries, RooflineStep, Spent, Theme, TimePart,
    breakdown, estimates, roofline,
};

/// The margin less what a letter with two accents rises into it.
const SLACK: f64 = MARGIN - 12.0;

fn frame(width: f64) -> Frame {
    Frame {
        width,
        ..Frame::default()
    }
}

/// Every input, drawn for a frame.
fn all(frame: &Frame) -> Vec<(&'static str, Figure)> {
    let drawn = [
        ("roofline", roofline(&predictions::roofline(), frame)),
        (
            "roofline of what is expected",
            roofline(&predictions::roofline_expected(), frame),
        ),
        (
            "roofline of both ends",
            roofline(&predictions::roofline_ends(), frame),
        ),
        (
            "roofline of four",
            roofline(&predictions::roofline_of_four(), frame),
        ),
        (
            "roofline of many",
            roofline(&predictions::roofline_of_many(), frame),
        ),
        (
            "damaged roofline",
            roofline(&predictions::roofline_damaged(), frame),
        ),
        (
            "roofline of one point",
            roofline(&predictions::roofline_point(), frame),
        ),
        (
            "hostile roofline",
            roofline(&predictions::hostile_roofline(), frame),
        ),
        ("breakdown", breakdown(&predictions::breakdown(), frame)),
        (
            "breakdown of experts",
            breakdown(&predictions::breakdown_of_experts(), frame),
        ),
        (
            "breakdown with gaps",
            breakdown(&predictions::breakdown_gaps(), frame),
        ),
        (
            "breakdown of ten",
            breakdown(&predictions::breakdown_of_ten(), frame),
        ),
        (
            "hostile breakdown",
            breakdown(&predictions::hostile_breakdown(), frame),
        ),
        ("estimates", estimates(&predictions::estimates(), frame)),
        (
            "estimates with parts",
            estimates(&predictions::estimates_with_parts(), frame),
        ),
        (
            "estimates alone",
            estimates(&predictions::estimates_alone(), frame),
        ),
        (
            "estimates without a calibration",
            estimates(&predictions::estimates_without_calibration(), frame),
        ),
    ];
    drawn
        .into_iter()
        .map(|(name, figure)| (name, figure.expect("it is drawn")))
        .collect()
}

fn data(figure: Result<Figure, Error>) -> Data {
    figure.expect("it is drawn").data
}

fn find<'a>(data: &'a Data, kind: MarkKind, text: &str) -> &'a Mark {
    data.marks
        .iter()
        .find(|mark| mark.kind == kind && mark.text.starts_with(text))
        .unwrap_or_else(|| panic!("no {kind:?} that says {text:?}: {:#?}", data.marks))
}

/// Every text of the picture, in the order in which it is drawn.
fn words(figure: &Figure) -> String {
    let (ink, ..) = picture::ink(&figure.svg_for(Theme::Light));
    let texts: Vec<String> = ink.into_iter().filter_map(|ink| ink.text).collect();
    texts.join(" ")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.011
}

#[test]
fn labels_stand_clear_in_every_example() {
    for width in [420.0, 580.0, 860.0, 1232.0] {
        for (name, figure) in all(&frame(width)) {
            let faults = picture::faults(&figure.svg_for(Theme::Light), SLACK);
            assert!(faults.is_empty(), "{name} at {width}: {faults:#?}");
        }
    }
}

#[test]
fn labels_stand_clear_when_a_height_is_asked_for() {
    for height in [100.0, 639.0, 2_000.0] {
        let frame = Frame {
            height: Some(height),
            ..Frame::default()
        };
        for (name, figure) in all(&frame) {
            let faults = picture::faults(&figure.svg_for(Theme::Light), SLACK);
            assert!(faults.is_empty(), "{name} at {height}: {faults:#?}");
        }
    }
}

#[test]
fn nothing_expected_makes_no_figure_but_a_sentence() {
    let frame = Frame::default();
    let mut no_parts = predictions::breakdown();
    for row in &mut no_parts.rows {
        row.prefill.parts.clear();
        row.decode.parts.clear();
    }
    let mut no_limits = predictions::roofline_expected();
    let series = &mut no_limits.series[0];
    (series.reading, series.arithmetic) = (None, None);
    for step in &mut series.steps {
        step.expected = None;
    }
    for figure in [
        breakdown(&no_parts, &frame),
        breakdown(&Breakdown::default(), &frame),
        roofline(&no_limits, &frame),
        roofline(&Roofline::default(), &frame),
        estimates(&Estimates::default(), &frame),
    ] {
        assert_eq!(figure.err(), Some(Error::Empty));
    }
}

#[test]
fn titles_say_what_was_found() {
    let frame = Frame::default();
    for (figure, title) in [
        (
            // 168 / 18.0 = 9.33 FLOP/byte; one token is 268e6 / 90e6 = 2.98: 3.13 tokens.
            roofline(&predictions::roofline(), &frame),
            "Four tokens per step are enough to move the limit from memory to arithmetic",
        ),
        (
            // 84 / 18 / (268 / 97) = 1.69 and 120 / 17.2 / (268 / 143) = 3.72, 72 / 12 / (268 / 270)
            // = 6.04.
            roofline(&predictions::roofline_of_four(), &frame),
            "The limit moves from memory to arithmetic at 2 (Q4_1) to 7 (F16) tokens per step",
        ),
        (
            // Of a token 50 % and 21 % are weights.
            breakdown(&predictions::breakdown(), &frame),
            "Weights take 84\u{a0}% of a prompt’s expected time and 71\u{a0}% of a token’s",
        ),
        (
            // Prefill: 612 / 615, 300 / 315, 438 / 440, 254 / 260; decode: 118 / 117.5,
            // 107 / 106.5, 79.6 / 79.75, 48.9 / 48.15: the second is 4.8 % off.
            estimates(&predictions::estimates(), &frame),
            "All 8 measured speeds are within 4.8\u{a0}% of what was expected",
        ),
        (
            estimates(&predictions::estimates_alone(), &frame),
            "Expected speed of 6 models",
        ),
    ] {
        assert_eq!(data(figure).title, title);
    }
}

#[test]
fn a_speed_outside_its_range_is_told_with_its_side() {
    let mut input = predictions::estimates();
    input.rows[3].decode.measured = Some(inputs::around(30.0, 1.0));
    // 30 / 48.15 = 0.623.
    assert_eq!(
        data(estimates(&input, &Frame::default())).title,
        "7 of 8 measured speeds are as expected; the furthest is 38\u{a0}% slower"
    );
}

#[test]
fn where_the_limit_never_changes_the_title_says_so() {
    let frame = Frame::default();
    let mut input = predictions::roofline();
    input.series[0].arithmetic = Some(1e6);
    input.series[0].ridge_tokens = None;
    assert_eq!(
        data(roofline(&input, &frame)).title,
        "Reading memory is the limit up to 512 tokens per step"
    );
    input.series[0].arithmetic = Some(10.0);
    input.series[0].ridge_tokens = Some(1.0);
    assert_eq!(
        data(roofline(&input, &frame)).title,
        "Arithmetic is the limit from the first token on"
    );
}

#[test]
fn a_step_lies_at_the_logarithm_of_its_speed() {
    let input = predictions::roofline();
    let data = data(roofline(&input, &Frame::default()));
    let panel = &data.panels[0];
    assert!(panel.logarithmic && panel.upward);
    for (step, tokens) in input.series[0].steps.iter().zip(["1 token", "2 tokens"]) {
        let point = find(&data, MarkKind::Point, &format!("{tokens} per step"));
        let value = step.measured.as_ref().expect("measured").mean;
        assert_eq!(point.value, Some(value));
        assert_eq!(point.at, Some(step.intensity));
        let y = panel.origin - value.log10() * panel.scale;
        assert!(close(point.y + point.h / 2.0, y), "{point:?}");
        let band = find(&data, MarkKind::Band, &format!("{tokens} per step"));
        let expected = step.expected.expect("expected");
        assert_eq!(
            (band.value, band.low, band.high),
            (
                Some(expected.value),
                Some(expected.low),
                Some(expected.high)
            )
        );
        let top = panel.origin - expected.high.log10() * panel.scale;
        assert!(close(band.y, top), "{band:?}");
    }
}

#[test]
fn a_step_is_told_with_its_limit_and_what_it_is_in_tokens() {
    let data = data(roofline(&predictions::roofline(), &Frame::default()));
    let first = find(&data, MarkKind::Point, "1 token per step");
    // One token: 268e6 operations in 90e6 / 18e9 + 268e6 / (0.86 x 168e9) + 0.61e-3 s = 7.465 ms:
    // 35.9 GFLOP/s and 134 tok/s. Memory allows 18 x 2.978 = 53.6.
    assert!(
        first
            .text
            .starts_with("1 token per step: 35.9 ± 0.7 GFLOP/s, 5 samples, 134 tok/s"),
        "{}",
        first.text
    );
    assert!(
        first.text.ends_with("memory allows 53.6, 2.98 FLOP/byte"),
        "{}",
        first.text
    );
    let last = find(&data, MarkKind::Ceiling, "512 tokens per step");
    assert_eq!(
        last.text,
        "512 tokens per step: arithmetic allows 168 GFLOP/s"
    );
}

#[test]
fn steps_that_were_not_measured_say_what_is_expected() {
    let data = data(roofline(&predictions::roofline_ends(), &Frame::default()));
    let missing = find(
        &data,
        MarkKind::Missing,
        "32 tokens per step: not measured, expected ",
    );
    assert_eq!(missing.value, None);
    assert_eq!(
        data.marks
            .iter()
            .filter(|mark| mark.kind == MarkKind::Point)
            .count(),
        2
    );
}

#[test]
fn more_series_than_can_be_told_apart_are_counted() {
    let figure = roofline(&predictions::roofline_of_many(), &Frame::default());
    let figure = figure.expect("it is drawn");
    assert_eq!(figure.data.rows.len(), 4);
    assert!(words(&figure).contains("2 more results are not drawn."));
}

#[test]
fn the_parts_of_a_time_lie_end_to_end_and_sum_up_to_what_is_expected() {
    let data = data(breakdown(&predictions::breakdown(), &Frame::default()));
    let [_, decode] = &data.panels[..] else {
        panic!("two panels");
    };
    let parts: Vec<&Mark> = data
        .marks
        .iter()
        .filter(|mark| (mark.kind, mark.panel, mark.row) == (MarkKind::Part, 1, 0))
        .collect();
    let names: Vec<&str> = parts
        .iter()
        .filter_map(|part| part.part.as_deref())
        .collect();
    // State (1 %) and starting a step (2 %) are small.
    assert_eq!(
        names,
        [
            "weights Q4_0",
            "output matrix Q8_0",
            "attention",
            "small operations",
            "other"
        ]
    );
    let sum: f64 = parts.iter().filter_map(|part| part.value).sum();
    assert!((sum - 8.4).abs() < 1e-9, "{sum}");
    let mut begins = decode.origin;
    for part in &parts {
        assert!(close(part.x, begins), "{part:?}");
        begins += part.value.expect("a time") * decode.scale;
    }
    let other = parts[4];
    assert_eq!(
        other.text,
        "Q4_0, decode: other 3\u{a0}%, 0.25\u{a0}ms (state 0.08\u{a0}ms, starting a step 0.17\u{a0}ms)"
    );
}

#[test]
fn a_time_is_told_with_all_that_it_is_made_of() {
    let data = data(breakdown(&predictions::breakdown(), &Frame::default()));
    let bar = find(
        &data,
        MarkKind::Bar,
        "Q4_0, decode: 8.50\u{a0}ms, 5 samples, expected 8.40\u{a0}ms",
    );
    assert!(
        bar.text.contains("weights Q4_0 50\u{a0}%, 4.20\u{a0}ms; "),
        "{}",
        bar.text
    );
    let missing = find(
        &data,
        MarkKind::Missing,
        "F16, decode: not measured, expected 21.0\u{a0}ms",
    );
    assert_eq!(missing.value, None);
    let band = find(
        &data,
        MarkKind::Band,
        "F16, decode: expected 21.0\u{a0}ms (19.1 to 23.1\u{a0}ms)",
    );
    assert_eq!(band.value, Some(21.0));
}

#[test]
fn parts_follow_what_own_runs_corrected() {
    let mut input = predictions::breakdown();
    input.rows[0].decode.expected = Some(predictions::within(10.0, 0.05));
    let data = data(breakdown(&input, &Frame::default()));
    let sum: f64 = data
        .marks
        .iter()
        .filter(|mark| (mark.kind, mark.panel, mark.row) == (MarkKind::Part, 1, 0))
        .filter_map(|mark| mark.value)
        .sum();
    assert!((sum - 10.0).abs() < 1e-9, "{sum}");
}

#[test]
fn a_phase_of_which_nothing_is_expected_is_named() {
    let figure = breakdown(&predictions::breakdown_gaps(), &Frame::default()).expect("drawn");
    assert_eq!(figure.data.panels.len(), 1);
    // Where the line breaks is the layout's business.
    assert!(figure.for_screen().contains("Of prefill no"));
}

#[test]
fn every_filled_part_is_where_the_picture_has_its_ink() {
    for figure in [
        breakdown(&predictions::breakdown(), &Frame::default()),
        breakdown(&predictions::breakdown_of_experts(), &Frame::default()),
        estimates(&predictions::estimates_with_parts(), &Frame::default()),
        roofline(&predictions::roofline_of_four(), &Frame::default()),
    ] {
        let figure = figure.expect("it is drawn");
        let (ink, ..) = picture::ink(&figure.svg_for(Theme::Light));
        let shapes: Vec<_> = ink.iter().filter(|ink| ink.text.is_none()).collect();
        let wanted = figure.data.marks.iter().filter(|mark| {
            matches!(
                mark.kind,
                MarkKind::Part | MarkKind::Point | MarkKind::Sample
            ) && mark.w > 0.0
        });
        for mark in wanted {
            let drawn = shapes.iter().any(|shape| {
                close(shape.area.left - MARGIN, mark.x)
                    && close(shape.area.top - MARGIN, mark.y)
                    && close(shape.area.right - MARGIN, mark.x + mark.w)
                    && close(shape.area.bottom - MARGIN, mark.y + mark.h)
            });
            assert!(drawn, "{mark:?}");
        }
    }
}

#[test]
fn measured_is_a_point_on_the_expected_range() {
    let input = predictions::estimates();
    let data = data(estimates(&input, &Frame::default()));
    let panel = &data.panels[1];
    let point = find(&data, MarkKind::Point, "Q4_0, decode: 118 ± 4 tok/s");
    assert!(close(
        point.x + point.w / 2.0,
        panel.origin + 118.0 * panel.scale
    ));
    let band = find(
        &data,
        MarkKind::Band,
        "Q4_0, decode: expected 118 tok/s (110–125)",
    );
    assert_eq!(band.value, Some(117.5));
    assert!(!data.marks.iter().any(|mark| mark.kind == MarkKind::Bar));
}

#[test]
fn cells_are_counted_by_their_headlines() {
    for (name, figure) in all(&Frame::default()) {
        let marks = &figure.data.marks;
        let headlines = marks.iter().filter(|mark| mark.kind.is_headline()).count();
        assert_eq!(
            marks.last().map(|mark| mark.cell + 1),
            Some(headlines),
            "{name}"
        );
        assert!(marks[0].kind.is_headline(), "{name}");
    }
}

#[test]
fn it_serializes_to_plain_json_and_back() {
    for (name, figure) in all(&Frame::default()) {
        let json = serde_json::to_value(&figure.data).expect("JSON");
        let back: Data = serde_json::from_value(json).expect("the same shape");
        assert_eq!(back.marks.len(), figure.data.marks.len(), "{name}");
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.1..2_000.0,
        2 => (-6.0..13.0).prop_map(|exponent: f64| 10f64.powf(exponent)),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX)],
    ]
}

fn measured() -> impl Strategy<Value = Measured> {
    (value(), 0.0..0.4, 0usize..9).prop_map(|(mean, relative, count)| Measured {
        mean,
        deviation: (count != 1).then_some(mean * relative),
        samples: (0..count)
            .map(|i| mean * (1.0 + relative * (i as f64 / 5.0 - 1.0)))
            .collect(),
    })
}

fn expected() -> impl Strategy<Value = Expected> {
    (value(), 0.0..0.5, 0.0..0.5).prop_map(|(value, low, high)| Expected {
        value,
        low: value * (1.0 - low),
        high: value * (1.0 + high),
    })
}

/// Letters of the scripts that Inter covers: what others draw above their line is not known here.
const LETTERS: &str = "[ -~À-ɏΑ-ωА-я]{0,40}";

fn name() -> impl Strategy<Value = Name> {
    (
        proptest::option::of(LETTERS),
        LETTERS,
        proptest::option::of(LETTERS),
    )
        .prop_map(|(group, label, detail)| Name {
            group,
            label,
            detail,
        })
}

fn step() -> impl Strategy<Value = RooflineStep> {
    (
        1u64..2000,
        value(),
        value(),
        proptest::option::of(expected()),
        proptest::option::of(measured()),
    )
        .prop_map(
            |(tokens, intensity, flops, expected, measured)| RooflineStep {
                tokens,
                intensity,
                flops_per_token: flops * 1e6,
                expected,
                measured,
            },
        )
}

fn series() -> impl Strategy<Value = RooflineSeries> {
    (
        name(),
        proptest::option::weighted(0.8, value()),
        proptest::option::weighted(0.8, value()),
        proptest::option::of(value()),
        proptest::collection::vec(step(), 0..11),
    )
        .prop_map(
            |(name, reading, arithmetic, ridge_tokens, steps)| RooflineSeries {
                name,
                reading,
                arithmetic,
                ridge_tokens,
                steps,
            },
        )
}

fn spent() -> impl Strategy<Value = Spent> {
    // Parts are named by the program itself.
    let part = ("[ -~]{0,30}", 0usize..3, value()).prop_map(|(name, cause, ms)| TimePart {
        name,
        cause: Cause::ALL[cause],
        ms,
    });
    (
        proptest::collection::vec(part, 0..9),
        proptest::option::of(expected()),
        proptest::option::of(measured()),
    )
        .prop_map(|(parts, expected, measured)| Spent {
            parts,
            expected,
            measured,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_roofline_of_anything_is_drawn_clear_of_itself(
        series in proptest::collection::vec(series(), 1..6),
        width in 420.0..1_300.0,
    ) {
        let input = Roofline { series, ..predictions::roofline() };
        if let Ok(figure) = roofline(&input, &frame(width)) {
            let faults = picture::faults(&figure.svg_for(Theme::Light), SLACK);
            prop_assert!(faults.is_empty(), "{faults:#?}");
            for mark in &figure.data.marks {
                prop_assert!([mark.x, mark.y, mark.w, mark.h].iter().all(|v| v.is_finite()));
            }
        }
    }

    #[test]
    fn a_breakdown_of_anything_is_drawn_clear_of_itself(
        rows in proptest::collection::vec((name(), spent(), spent()), 1..6),
        width in 420.0..1_300.0,
    ) {
        let rows = rows
            .into_iter()
            .map(|(name, prefill, decode)| BreakdownRow { name, prefill, decode })
            .collect();
        let input = Breakdown { rows, ..predictions::breakdown() };
        if let Ok(figure) = breakdown(&input, &frame(width)) {
            let faults = picture::faults(&figure.svg_for(Theme::Light), SLACK);
            prop_assert!(faults.is_empty(), "{faults:#?}");
        }
    }
}
