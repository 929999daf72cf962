//! The figures of depth, users, time, waits and quantizations: what they say, and where.

// Everything here is a test: helpers may end it as tests do.
#![allow(clippy::panic)]

mod inputs;
mod picture;

use inputs::{curves, rows};
use proptest::prelude::*;
use twospeed_chart::{
    At, Context, ContextSeries, Data, Error, Figure, FirstToken, Frame, MARGIN, Mark, MarkKind,
    Measured, Name, Part, Quantizations, Request, Sustained, SustainedSeries, Theme, Users, Wait,
    context, first_token, quantization, sustained, users,
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
        ("context", context(&curves::context(), frame)),
        (
            "context of three",
            context(&curves::context_of_three(), frame),
        ),
        (
            "context of twelve",
            context(&curves::context_of_twelve(), frame),
        ),
        (
            "context of one point",
            context(&curves::context_point(), frame),
        ),
        (
            "damaged context",
            context(&curves::context_damaged(), frame),
        ),
        (
            "hostile context",
            context(&curves::hostile_context(), frame),
        ),
        ("users", users(&curves::users(), frame)),
        ("users of two", users(&curves::users_of_two(), frame)),
        ("sustained", sustained(&curves::sustained(), frame)),
        (
            "sustained, short",
            sustained(&curves::sustained_short(), frame),
        ),
        ("first token", first_token(&rows::first_token(), frame)),
        ("starts of two", first_token(&rows::starts_of_two(), frame)),
        (
            "nothing reused",
            first_token(&rows::nothing_reused(), frame),
        ),
        ("one wait", first_token(&rows::one_wait(), frame)),
        ("hostile waits", first_token(&rows::hostile_waits(), frame)),
        (
            "quantization",
            quantization(&rows::quantizations_with_quality(), frame),
        ),
        (
            "speeds alone",
            quantization(&rows::quantizations_without_quality(), frame),
        ),
        ("gaps", quantization(&rows::quantization_gaps(), frame)),
    ];
    drawn
        .into_iter()
        .map(|(name, figure)| (name, figure.expect("it is drawn")))
        .collect()
}

fn data(figure: Result<Figure, Error>) -> Data {
    figure.expect("it is drawn").data
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.011
}

#[test]
fn labels_stand_clear_in_every_example() {
    for width in [420.0, 580.0, 860.0] {
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
fn lines_fill_the_height_of_the_screen() {
    let frame = Frame {
        height: Some(700.0),
        ..Frame::default()
    };
    let figure = context(&curves::context(), &frame).expect("it is drawn");
    assert!((figure.height() - 700.0).abs() < 4.0, "{}", figure.height());
}

#[test]
fn nothing_measured_makes_no_figure_but_a_sentence() {
    let frame = Frame::default();
    for figure in [
        context(&Context::default(), &frame),
        users(&Users::default(), &frame),
        sustained(&Sustained::default(), &frame),
        first_token(&FirstToken::default(), &frame),
        quantization(&Quantizations::default(), &frame),
    ] {
        assert_eq!(figure.expect_err("nothing to draw"), Error::Empty);
    }
    let mut damaged = curves::context();
    damaged.series[0].prefill = vec![At::one(0.0, f64::NAN)];
    damaged.series[0].decode.clear();
    assert_eq!(
        context(&damaged, &frame).expect_err("nothing"),
        Error::Empty
    );
}

#[test]
fn titles_say_what_was_found() {
    let frame = Frame::default();
    for (title, figure) in [
        // By hand: 1 - 1 / (1 + 8192 / 13000) = 0.387; of prefill 8192 / 9000 the same way 0.476.
        (
            "At a depth of 8,192 tokens decode has lost 39\u{a0}% and prefill 48\u{a0}%",
            context(&curves::context(), &frame),
        ),
        // 138 * 8 / (1 + 7 / 4) = 401.5; / 138 = 2.9.
        (
            "Eight users together decode 2.9 times as fast as one",
            users(&curves::users(), &frame),
        ),
        (
            "After ten minutes prefill holds 78\u{a0}% and decode 93\u{a0}% of its first speed",
            sustained(&curves::sustained(), &frame),
        ),
        // 1.1 + 19.4 + 0.4 = 20.9; 1.3 + 699 + 0.4 = 700.7.
        (
            "A repeated prompt answers in 21\u{a0}ms instead of 701\u{a0}ms",
            first_token(&rows::first_token(), &frame),
        ),
        // 118 / 48.9 = 2.41; 25.87 / 23.29 = 1.111.
        (
            "Q4_0 decodes 2.4 times as fast as F16 and its perplexity is 11\u{a0}% higher",
            quantization(&rows::quantizations_with_quality(), &frame),
        ),
        (
            "Q4_0 decodes 2.4 times as fast as F16",
            quantization(&rows::quantizations_without_quality(), &frame),
        ),
        (
            "A repeated prompt is read anew: nothing of it was reused",
            first_token(&rows::nothing_reused(), &frame),
        ),
        // 1310 of 2027.6 ms.
        (
            "Loading the model is 65\u{a0}% of the wait for the first token",
            first_token(&rows::one_wait(), &frame),
        ),
        (
            "Speed of SmolLM2 135M Instruct Q4_1 at growing depth",
            context(&curves::context_point(), &frame),
        ),
        (
            "Speed of SmolLM2 135M Instruct Q4_1 over time",
            sustained(&curves::sustained_short(), &frame),
        ),
    ] {
        assert_eq!(data(figure).title, title);
    }
}

#[test]
fn a_difference_within_the_deviations_is_not_told() {
    let mut input = curves::context();
    let level = |mean| curves::at(&[(0.0, mean), (4096.0, mean * 0.99)]);
    input.series[0].prefill = level(350.0);
    input.series[0].decode = level(138.0);
    assert_eq!(
        data(context(&input, &Frame::default())).title,
        "Both speeds hold up to a depth of 4,096 tokens"
    );
    input.series[0].prefill.clear();
    assert_eq!(
        data(context(&input, &Frame::default())).title,
        "Decode keeps its speed up to a depth of 4,096 tokens"
    );
}

#[test]
fn series_are_compared_at_the_deepest_depth_that_all_have() {
    let data = data(context(&curves::context_of_three(), &Frame::default()));
    // Q8_0 ends at 2,048, which the second series lacks: 1,024 / (1,024 + 16,000) = 6.0 % and
    // 1,024 / (1,024 + 9,000) = 10.2 %.
    assert!(
        data.title
            .starts_with("At a depth of 1,024 tokens decode has lost 6\u{a0}% (Q4_1, K q8"),
        "{}",
        data.title
    );
    assert!(
        data.title.ends_with("to 10\u{a0}% (Q8_0)"),
        "{}",
        data.title
    );
}

#[test]
fn several_series_are_told_by_the_least_and_the_most() {
    let users = data(users(&curves::users_of_two(), &Frame::default()));
    // 138 * 8 / (1 + 7 / 4) / 138 = 2.9 and 8 / (1 + 7 / 7) = 4.
    assert!(
        users.title.starts_with("Eight users decode 2.9 times ("),
        "{}",
        users.title
    );
    assert!(users.title.contains(") to 4 times (") && users.title.ends_with(") as fast as one"));
    let mut input = curves::sustained();
    let mut other = input.series[0].clone();
    other.name = curves::named("F16", None);
    other.decode = other.decode.iter().map(|(at, _)| (*at, 50.0)).collect();
    input.series.push(other);
    let title = data(sustained(&input, &Frame::default())).title;
    assert_eq!(
        title,
        "After ten minutes decode holds 93\u{a0}% (Q4_1) to 100\u{a0}% (F16) of its first speed"
    );
}

fn find<'a>(data: &'a Data, kind: MarkKind, text: &str) -> &'a Mark {
    data.marks
        .iter()
        .find(|mark| mark.kind == kind && mark.text.starts_with(text))
        .unwrap_or_else(|| panic!("{text} is not among {:#?}", data.marks))
}

#[test]
fn a_point_lies_where_its_value_does() {
    for figure in [
        context(&curves::context(), &Frame::default()),
        users(&curves::users_of_two(), &frame(860.0)),
        sustained(&curves::sustained(), &Frame::default()),
    ] {
        let data = data(figure);
        for mark in data
            .marks
            .iter()
            .filter(|mark| mark.kind == MarkKind::Point)
        {
            let panel = &data.panels[mark.panel];
            let value = mark.value.expect("a value");
            let y = panel.origin - value * panel.scale;
            assert!(panel.upward && close(mark.y + mark.h / 2.0, y), "{mark:?}");
        }
    }
}

#[test]
fn every_point_is_where_the_picture_has_its_ink() {
    let figure = context(&curves::context(), &Frame::default()).expect("it is drawn");
    let (ink, ..) = picture::ink(&figure.svg_for(Theme::Light));
    for mark in figure
        .data
        .marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Point)
    {
        let colour = ["#1F68C4", "#D4610F"][mark.panel];
        let drawn = ink.iter().any(|ink| {
            ink.text.is_none()
                && ink.colour == colour
                && close(ink.area.left - MARGIN, mark.x)
                && close(ink.area.bottom - MARGIN, mark.y + mark.h)
        });
        assert!(drawn, "{mark:?}");
    }
}

#[test]
fn read_outs_say_the_whole_of_a_point() {
    let one = data(context(&curves::context(), &Frame::default()));
    let point = find(&one, MarkKind::Point, "decode at a depth of 512");
    assert_eq!(
        point.text,
        "decode at a depth of 512 tokens: 133 ± 3 tok/s, 5 samples"
    );
    assert_eq!(
        (point.at, point.samples, point.panel),
        (Some(512.0), Some(5), 1)
    );
    assert!(find(&one, MarkKind::Point, "prefill with an empty cache: 350").at == Some(0.0));
    let two = data(users(&curves::users_of_two(), &Frame::default()));
    let worst = find(
        &two,
        MarkKind::Point,
        "Q4_1, time to first token, worst, with 8 users",
    );
    assert_eq!((worst.part.as_deref(), worst.row), (Some("worst"), 0));
    let long = data(sustained(&curves::sustained(), &Frame::default()));
    // The eleventh decode, 5 + 80 s.
    find(&long, MarkKind::Point, "decode after 1 min 25 s: ");
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
        assert!(
            marks.windows(2).all(|pair| pair[0].cell <= pair[1].cell),
            "{name}"
        );
        assert!(marks[0].kind.is_headline(), "{name}");
    }
}

#[test]
fn damaged_numbers_are_gaps_with_a_note() {
    let figure = context(&curves::context_damaged(), &Frame::default()).expect("it is drawn");
    let gaps: Vec<_> = figure
        .data
        .marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Missing)
        .map(|mark| mark.text.as_str())
        .collect();
    assert_eq!(
        gaps,
        [
            "prefill with an empty cache: not measured",
            "prefill at a depth of 1,024 tokens: not measured"
        ]
    );
    let svg = figure.for_screen();
    assert!(svg.contains("Where a line is broken, nothing was measured."));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_phase_that_was_not_measured_has_no_panel_and_is_named() {
    let figure = context(&curves::context_point(), &Frame::default()).expect("it is drawn");
    let ids: Vec<_> = figure
        .data
        .panels
        .iter()
        .map(|panel| panel.id.as_str())
        .collect();
    assert_eq!(ids, ["decode"]);
    assert!(figure.for_screen().contains("Prefill was not measured."));
    let point = &figure.data.marks[0];
    assert_eq!(
        point.text,
        "decode at a depth of 4,096 tokens: 88.0 ± 2.5 tok/s"
    );
}

#[test]
fn what_the_machine_did_not_say_has_no_panel_and_is_no_gap() {
    let data = data(sustained(&curves::sustained_short(), &Frame::default()));
    assert_eq!(data.panels.len(), 1);
    assert_eq!(data.panels[0].across.as_deref(), Some("seconds"));
}

#[test]
fn a_wait_is_the_sum_of_its_parts_and_reused_tokens_are_none_of_them() {
    let data = data(first_token(&rows::first_token(), &Frame::default()));
    let wait = find(&data, MarkKind::Bar, "Repeated");
    assert_eq!(
        wait.text,
        "Repeated: first token after 21\u{a0}ms, 5 samples: tokenize 1.1\u{a0}ms, \
         prefill 19\u{a0}ms, first sample 0.40\u{a0}ms; 511 of 512 prompt tokens reused from the cache"
    );
    let panel = &data.panels[wait.panel];
    assert!(
        close(wait.x + wait.w, panel.origin + 20.9 * panel.scale),
        "{wait:?}"
    );
    let reused = find(&data, MarkKind::Reused, "Repeated");
    assert_eq!(data.panels[reused.panel].id, "tokens");
    assert_eq!((reused.value, reused.cell), (Some(511.0), wait.cell));
    let parts: Vec<_> = data
        .marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Part && mark.cell == wait.cell)
        .collect();
    let names: Vec<_> = parts
        .iter()
        .filter_map(|mark| mark.part.as_deref())
        .collect();
    assert_eq!(
        names,
        ["tokenize", "prefill", "first sample", "then first decode"]
    );
    assert!(
        parts
            .windows(2)
            .all(|pair| close(pair[0].x + pair[0].w, pair[1].x))
    );
    // The second token comes after the wait.
    assert!(close(parts[3].x, wait.x + wait.w), "{:?}", parts[3]);
}

#[test]
fn waits_that_begin_alike_share_an_axis() {
    let data = data(first_token(&rows::first_token(), &Frame::default()));
    let panels: Vec<_> = data.panels.iter().map(|panel| panel.id.as_str()).collect();
    assert_eq!(panels, ["start", "prompt", "tokens"]);
    let labels: Vec<_> = data.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "Cold start",
            "Warm start",
            "New prompt",
            "Repeated",
            "Changed tail"
        ]
    );
}

#[test]
fn long_waits_are_in_seconds() {
    let mut input = rows::one_wait();
    input.waits[0].total_ms = Some(Measured {
        mean: 18_200.0,
        ..Measured::default()
    });
    input.waits[0].parts = vec![(Part::Load, 17_000.0), (Part::Prefill, 1_200.0)];
    let data = data(first_token(&input, &Frame::default()));
    assert_eq!(data.panels[0].unit, "s");
    assert_eq!(data.marks[0].value, Some(18.2));
}

#[test]
fn quality_stands_beside_the_speeds_and_the_base_is_named() {
    let data = data(quantization(
        &rows::quantizations_with_quality(),
        &Frame::default(),
    ));
    let panels: Vec<_> = data.panels.iter().map(|panel| panel.id.as_str()).collect();
    assert_eq!(panels, ["prefill", "decode", "perplexity", "divergence"]);
    // 24.41 / 23.29 - 1 = 4.8 %.
    let perplexity = find(&data, MarkKind::Bar, "Q4_K_M, perplexity");
    assert_eq!(
        perplexity.text,
        "Q4_K_M, perplexity: 24.41 ± 0.5, +4.8\u{a0}%"
    );
    assert!((perplexity.value.expect("a value") - 4.809).abs() < 0.001);
    find(
        &data,
        MarkKind::Bar,
        "F16, perplexity: 23.29 ± 0.5, the lowest",
    );
    find(
        &data,
        MarkKind::Bar,
        "F16, divergence: the others are compared with it",
    );
    find(&data, MarkKind::Bar, "Q8_0, divergence: 0.00180 ± 0.0001");
    assert_eq!(data.rows[1].details, ["105\u{a0}MB"]);
}

#[test]
fn without_quality_there_is_no_column_for_it() {
    let data = data(quantization(
        &rows::quantizations_without_quality(),
        &Frame::default(),
    ));
    assert_eq!(data.panels.len(), 2);
}

#[test]
fn a_speed_that_no_quantization_has_is_named_and_has_no_column() {
    let mut input = rows::quantizations_with_quality();
    for row in &mut input.rows {
        row.prefill = None;
    }
    let figure = quantization(&input, &Frame::default()).expect("it is drawn");
    let panels = figure.data.panels.iter().map(|panel| panel.id.as_str());
    assert_eq!(
        panels.collect::<Vec<_>>(),
        ["decode", "perplexity", "divergence"]
    );
    assert!(figure.for_screen().contains("Prefill was not measured."));
    for row in &mut input.rows {
        (row.decode, row.quality) = (None, None);
    }
    assert_eq!(
        quantization(&input, &Frame::default()).expect_err("nothing"),
        Error::Empty
    );
}

#[test]
fn gaps_of_quantizations_are_said() {
    let data = data(quantization(&rows::quantization_gaps(), &Frame::default()));
    for text in [
        "Q4_0, prefill: not measured",
        "Q4_K_M, perplexity: not measured",
        "Q8_0, perplexity: not measured",
    ] {
        assert_eq!(find(&data, MarkKind::Missing, text).value, None);
    }
}

#[test]
fn full_names_are_kept_where_the_picture_shortens_them() {
    let figure = context(&curves::context_of_twelve(), &Frame::default()).expect("it is drawn");
    let name = "Q13_K_M of a model with a long name 11";
    assert_eq!(figure.data.rows[11].label, name);
    assert!(!figure.for_screen().contains(name));
}

#[test]
fn it_serializes_to_plain_json_and_back() {
    let data = data(users(&curves::users(), &Frame::default()));
    let json = serde_json::to_value(&data).expect("JSON");
    assert_eq!(json["kind"], "users");
    assert_eq!(json["marks"][0]["kind"], "point");
    let back: Data = serde_json::from_value(json).expect("the same shape");
    assert_eq!(back.marks.len(), data.marks.len());
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 1.0..2_000.0,
        2 => (-6.0..12.0).prop_map(|exponent: f64| 10f64.powf(exponent)),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::MAX)],
    ]
}

fn measured() -> impl Strategy<Value = Measured> {
    (value(), 0.0..0.4, 0usize..30).prop_map(|(mean, relative, count)| Measured {
        mean,
        deviation: (count != 1).then_some(mean * relative),
        samples: (0..count)
            .map(|i| mean * (1.0 + relative * ((i * 7 % 11) as f64 / 5.0 - 1.0)))
            .collect(),
    })
}

fn points() -> impl Strategy<Value = Vec<At>> {
    let place = prop_oneof![
        6 => (0u32..18).prop_map(|i| if i == 0 { 0.0 } else { 2f64.powi(i as i32) }),
        1 => value(),
    ];
    proptest::collection::vec(
        (place, proptest::option::weighted(0.9, measured()))
            .prop_map(|(place, value)| At { place, value }),
        0..9,
    )
}

fn name() -> impl Strategy<Value = Name> {
    // Of scripts that the font covers: what a fallback font draws may be taller than its line.
    let text = prop_oneof![
        6 => "Q[2-8]_[0K](_[SM])?",
        2 => "[ -~À-žΑ-ωА-я]{0,40}",
    ];
    (text.clone(), proptest::option::weighted(0.3, text)).prop_map(|(label, detail)| Name {
        group: None,
        label,
        detail,
    })
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Load),
        Just(Part::Context),
        Just(Part::Tokenize),
        Just(Part::Prefill),
        Just(Part::FirstSample),
        Just(Part::FirstDecode),
    ]
}

fn wait() -> impl Strategy<Value = Wait> {
    let request = prop_oneof![
        Just(Request::Cold),
        Just(Request::Warm),
        Just(Request::AsItWas),
        Just(Request::New),
        Just(Request::Repeated),
        Just(Request::ChangedTail),
    ];
    (
        name(),
        request,
        proptest::option::weighted(0.9, measured()),
        proptest::collection::vec((part(), value()), 0..7),
        (0u64..9_000, 0u64..9_000),
    )
        .prop_map(
            |(name, request, total_ms, parts, (prompt_tokens, reused_tokens))| Wait {
                name,
                request,
                total_ms,
                parts,
                prompt_tokens,
                reused_tokens,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(200, |cases| cases.parse().unwrap_or(200)),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn labels_stand_clear_whatever_was_measured(
        series in proptest::collection::vec((name(), points(), points()), 1..13),
        courses in proptest::collection::vec((name(), proptest::collection::vec((0.0..900.0, value()), 0..60)), 1..4),
        waits in proptest::collection::vec(wait(), 1..7),
        width in 400.0..1_000.0,
        height in proptest::option::of(200.0..1_500.0),
    ) {
        let frame = Frame { width, height, scale: 1.0 };
        let context_of = Context {
            subtitle: "A subtitle".into(),
            prefill_test: Some("reading 512 tokens".into()),
            series: series
                .into_iter()
                .map(|(name, prefill, decode)| ContextSeries { name, prefill, decode })
                .collect(),
            ..Context::default()
        };
        let sustained_of = Sustained {
            series: courses
                .into_iter()
                .map(|(name, decode)| SustainedSeries { name, decode, ..SustainedSeries::default() })
                .collect(),
            ..Sustained::default()
        };
        let waits_of = FirstToken { waits, ..FirstToken::default() };
        for figure in [
            context(&context_of, &frame),
            sustained(&sustained_of, &frame),
            first_token(&waits_of, &frame),
        ] {
            let svg = match figure {
                Ok(figure) => figure.svg_for(Theme::Light),
                Err(error) => {
                    prop_assert_eq!(error, Error::Empty);
                    continue;
                }
            };
            let faults = picture::faults(&svg, SLACK);
            prop_assert!(faults.is_empty(), "{:#?}", faults);
        }
    }
}
