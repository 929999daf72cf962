//! No label stands on a mark, on another label or outside the picture, whatever is drawn.

mod inputs;
mod picture;

use inputs::HOSTILE;
use proptest::prelude::*;
use twospeed_chart::{
    Expected, Frame, MARGIN, Measured, Overlays, Phase, Row, Speeds, Theme, speeds,
};

/// The margin less what a letter with two accents rises into it.
const SLACK: f64 = MARGIN - 12.0;

fn frame(width: f64) -> Frame {
    Frame {
        width,
        ..Frame::default()
    }
}

fn assert_clear(input: &Speeds, frame: &Frame) {
    let svg = speeds(input, frame)
        .expect("it is drawn")
        .svg_for(Theme::Light);
    let faults = picture::faults(&svg, SLACK);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_checker_sees_a_label_on_a_mark_and_on_a_label() {
    let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" width="200" height="80" font-family="Inter">
        <rect x="0" y="0" width="60" height="40" fill="#1F68C4"/>
        <path fill="none" stroke="#55585D" d="M100 0L100 40M150 60L160 60"/>
        <text x="10" y="20" font-size="12" fill="#1A1B1D">one</text>
        <text x="14" y="24" font-size="12" fill="#1A1B1D">two</text>
        <text x="92" y="20" font-size="12" fill="#1A1B1D">line</text>
        <text x="190" y="20" font-size="11" fill="#1A1B1D">out</text>
        <text x="120" y="40" font-size="12" fill="#1A1B1D">ok</text>
    </svg>"##;
    let faults = picture::faults(svg, 0.0);
    let count = |part: &str| faults.iter().filter(|f| f.contains(part)).count();
    assert_eq!(count("on a #1F68C4 mark"), 2, "{faults:#?}");
    assert_eq!(count("\"one\" stands on Some(\"two\")"), 1);
    assert_eq!(count("on a #55585D mark"), 1);
    assert_eq!(count("\"out\" leaves"), 1);
    assert_eq!(count("\"out\" is set in 11 px"), 1);
    assert_eq!(count("\"ok\""), 0);
}

#[test]
fn labels_stand_clear_in_every_example() {
    for width in [420.0, 580.0, 860.0] {
        for input in [
            inputs::quantizations(),
            inputs::three_models(),
            inputs::one_model(),
            inputs::gaps(),
            inputs::far_off(),
            inputs::extremes(),
            inputs::twelve(),
            inputs::hostile(),
            inputs::with_breakdown(inputs::quantizations()),
            inputs::with_breakdown(inputs::three_models()),
            inputs::with_breakdown(inputs::far_off()),
            inputs::with_breakdown(inputs::extremes()),
        ] {
            assert_clear(&input, &frame(width));
        }
    }
}

#[test]
fn labels_stand_clear_when_rows_move_closer_or_apart() {
    for height in [100.0, 500.0, 664.0, 2_000.0] {
        let frame = Frame {
            height: Some(height),
            ..Frame::default()
        };
        assert_clear(&inputs::quantizations(), &frame);
        assert_clear(&inputs::three_models(), &frame);
    }
}

#[test]
fn labels_stand_clear_without_overlays() {
    for (ceiling, expected) in [(false, false), (true, false), (false, true)] {
        let mut input = inputs::three_models();
        input.overlays = Overlays {
            ceiling,
            expected,
            breakdown: false,
        };
        assert_clear(&input, &Frame::default());
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 1.0..2_000.0,
        2 => (-6.0..13.0).prop_map(|exponent: f64| 10f64.powf(exponent)),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX)],
    ]
}

fn phase() -> impl Strategy<Value = Phase> {
    let measured = (value(), 0.0..0.4, 0usize..60).prop_map(|(mean, relative, count)| Measured {
        mean,
        deviation: (count != 1).then_some(mean * relative),
        samples: (0..count)
            .map(|i| mean * (1.0 + relative * ((i * 7 % 11) as f64 / 5.0 - 1.0)))
            .collect(),
    });
    (
        proptest::option::weighted(0.85, measured),
        0.2..3.0,
        0.0..1.0,
        proptest::option::weighted(0.7, 0.3..150.0),
        any::<bool>(),
        value(),
    )
        .prop_map(|(measured, around, half, over, has_band, other)| {
            let base = measured.as_ref().map_or(other, |m| m.mean);
            Phase {
                expected: has_band.then_some(Expected {
                    value: base * around,
                    low: base * around * (1.0 - half),
                    high: base * around * (1.0 + half),
                }),
                ceiling: over.map(|over| base * over),
                parts: Vec::new(),
                measured,
            }
        })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "Q[2-8]_[0K](_[SM])?",
        1 => "[ -~À-žΑ-ωА-я一-龥ا-يא-ת😀-🙏]{0,40}",
        1 => "([a-zA-Z][\u{300}\u{301}\u{308}]?){0,20}",
        1 => Just(HOSTILE.to_owned()),
        1 => Just("Meta-Llama-3.1-70B-Instruct-abliterated-i1-IQ4_XS.gguf".to_owned()),
    ]
}

fn row() -> impl Strategy<Value = Row> {
    (
        proptest::option::of("[ABC]"),
        name(),
        proptest::option::of(0u64..u64::MAX),
        proptest::option::weighted(0.2, name()),
        phase(),
        phase(),
    )
        .prop_map(|(group, label, file_bytes, detail, prefill, decode)| Row {
            group,
            label,
            file_bytes,
            detail,
            prefill,
            decode,
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(400, |cases| cases.parse().unwrap_or(400)),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn labels_stand_clear_whatever_was_measured(
        rows in proptest::collection::vec(row(), 1..9),
        width in 400.0..1_000.0,
        height in proptest::option::of(200.0..1_500.0),
        (subject, subtitle) in (name(), name()),
    ) {
        let input = Speeds {
            subject,
            subtitle,
            prefill_test: Some("reading a 16,384-token prompt at depth 4,096".into()),
            decode_test: Some("writing 128 tokens".into()),
            rows,
            footer: vec!["A footer".into()],
            overlays: Overlays::default(),
        };
        let frame = Frame { width, height, scale: 1.0 };
        let svg = speeds(&input, &frame).expect("it is drawn").svg_for(Theme::Light);
        let faults = picture::faults(&svg, SLACK);
        prop_assert!(faults.is_empty(), "{:#?}", faults);
    }
}
