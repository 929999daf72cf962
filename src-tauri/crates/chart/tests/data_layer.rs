//! The data layer says what the picture shows, and where.

mod inputs;
mod picture;

use twospeed_chart::{Frame, Mark, MarkKind, Speeds, Theme, speeds};

fn marks(input: &Speeds) -> Vec<Mark> {
    speeds(input, &Frame::default())
        .expect("it is drawn")
        .data
        .marks
}

fn find(marks: &[Mark], kind: MarkKind, panel: usize, row: usize) -> &Mark {
    marks
        .iter()
        .find(|mark| (mark.kind, mark.panel, mark.row) == (kind, panel, row))
        .expect("the mark is there")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.011
}

#[test]
fn a_bar_ends_where_its_value_lies_on_the_axis() {
    let figure = speeds(&inputs::quantizations(), &Frame::default()).expect("it is drawn");
    // By hand: the names' column is 84 px and the panels are (580 - 84 - 32) / 2 = 232 px wide.
    // The prefill axis ends at the tick 800. Half the label `800` is 11 px, so it is 221 - 1 px
    // long; decode leaves 31 px for the label `200` beside its ceiling, so 200 px for 200.
    let [prefill, decode] = &figure.data.panels[..] else {
        panic!("two panels");
    };
    assert_eq!((prefill.origin, decode.origin), (84.5, 348.5));
    assert_eq!((prefill.end, decode.end), (800.0, 200.0));
    assert_eq!(prefill.ticks, [0.0, 200.0, 400.0, 600.0, 800.0]);
    assert!(
        (prefill.scale * 800.0 - 220.0).abs() <= 1.0,
        "{}",
        prefill.scale
    );
    assert!(
        (decode.scale * 200.0 - 200.0).abs() <= 3.0,
        "{}",
        decode.scale
    );

    let bar = find(&figure.data.marks, MarkKind::Bar, 0, 0);
    assert!(
        close(bar.x + bar.w, 84.5 + 612.0 * prefill.scale),
        "{bar:?}"
    );
    let bar = find(&figure.data.marks, MarkKind::Bar, 1, 3);
    assert!(close(bar.x + bar.w, 348.5 + 48.9 * decode.scale), "{bar:?}");
}

#[test]
fn every_box_is_where_the_picture_has_its_ink() {
    for input in [
        inputs::quantizations(),
        inputs::three_models(),
        inputs::far_off(),
        inputs::gaps(),
    ] {
        let figure = speeds(&input, &Frame::default()).expect("it is drawn");
        let (ink, ..) = picture::ink(&figure.svg_for(Theme::Light));
        let shapes: Vec<_> = ink.iter().filter(|ink| ink.text.is_none()).collect();
        for mark in
            figure.data.marks.iter().filter(|mark| {
                matches!(mark.kind, MarkKind::Bar | MarkKind::Sample) && mark.w > 0.0
            })
        {
            let margin = twospeed_chart::MARGIN;
            let colour = ["#1F68C4", "#D4610F"][mark.panel];
            let drawn = shapes.iter().any(|shape| {
                shape.colour == colour
                    && close(shape.area.left - margin, mark.x)
                    && close(shape.area.top - margin, mark.y)
                    && close(shape.area.right - margin, mark.x + mark.w)
                    && close(shape.area.bottom - margin, mark.y + mark.h)
            });
            assert!(drawn, "{mark:?}");
        }
    }
}

#[test]
fn a_sample_and_a_ceiling_stand_at_their_values() {
    let figure = speeds(&inputs::quantizations(), &Frame::default()).expect("it is drawn");
    let decode = &figure.data.panels[1];
    let marks = &figure.data.marks;
    let sample = find(marks, MarkKind::Sample, 1, 0);
    let value = sample.value.expect("a value");
    assert!(close(
        sample.x + sample.w / 2.0,
        decode.origin + value * decode.scale
    ));
    let ceiling = find(marks, MarkKind::Ceiling, 1, 1);
    assert_eq!(ceiling.value, Some(187.0));
    // Lines are moved to the middle of a pixel, by half a px at most.
    let at = decode.origin + 187.0 * decode.scale;
    assert!(
        (ceiling.x + ceiling.w / 2.0 - at).abs() <= 0.5,
        "{ceiling:?}"
    );
}

#[test]
fn the_read_out_is_the_whole_truth_of_a_cell() {
    let marks = marks(&inputs::quantizations());
    let read = |kind, panel, row| find(&marks, kind, panel, row).text.as_str();
    assert_eq!(
        read(MarkKind::Bar, 1, 0),
        "Q4_0, decode: 118 ± 4 tok/s, 5 samples, ceiling 200, expected 118 (110–125)"
    );
    assert_eq!(
        read(MarkKind::Ceiling, 1, 3),
        "F16, decode: ceiling 67 tok/s"
    );
    assert_eq!(
        read(MarkKind::Band, 0, 0),
        "Q4_0, prefill: expected 615 tok/s (560–670)"
    );
    assert_eq!(
        read(MarkKind::Sample, 1, 0),
        "Q4_0, decode: 114 tok/s, sample 1 of 5"
    );
}

#[test]
fn rows_of_several_models_say_which() {
    let marks = marks(&inputs::three_models());
    let bar = find(&marks, MarkKind::Bar, 0, 3);
    assert!(
        bar.text
            .starts_with("Gemma 3 270M it Q4_K_M, prefill: 551 ± 18 tok/s"),
        "{}",
        bar.text
    );
}

#[test]
fn what_was_not_measured_is_said_and_has_no_value() {
    let marks = marks(&inputs::gaps());
    let missing = find(&marks, MarkKind::Missing, 0, 1);
    assert_eq!(missing.text, "Q4_1, prefill: not measured");
    assert_eq!(missing.value, None);
    let missing = find(&marks, MarkKind::Missing, 1, 0);
    assert_eq!(
        missing.text,
        "Q4_0, decode: not measured, ceiling 200, expected 118 (110–125)"
    );
    assert!(
        !marks
            .iter()
            .any(|m| m.kind == MarkKind::Bar && (m.panel, m.row) == (0, 1))
    );
}

#[test]
fn one_sample_has_no_deviation() {
    let mut input = inputs::gaps();
    // Even where a careless source claims one.
    input.rows[2]
        .decode
        .measured
        .as_mut()
        .expect("measured")
        .deviation = Some(0.0);
    let marks = marks(&input);
    let bar = find(&marks, MarkKind::Bar, 1, 2);
    assert_eq!(bar.text, "Q8_0, decode: 79.6 tok/s, 1 sample, ceiling 126");
    assert_eq!((bar.deviation, bar.samples), (None, Some(1)));
}

#[test]
fn damaged_numbers_count_as_not_measured() {
    let marks = marks(&inputs::extremes());
    for row in [2, 3] {
        find(&marks, MarkKind::Missing, 1, row);
    }
    assert!(marks.iter().all(|mark| {
        [mark.x, mark.y, mark.w, mark.h]
            .iter()
            .all(|v| v.is_finite())
    }));
}

#[test]
fn far_predictions_leave_the_bars_readable_and_say_that_they_are_beyond() {
    let figure = speeds(&inputs::far_off(), &Frame::default()).expect("it is drawn");
    let bar = find(&figure.data.marks, MarkKind::Bar, 0, 0);
    assert!(
        bar.w > 150.0,
        "the longest bar keeps most of the panel: {bar:?}"
    );
    for (kind, panel, row, beyond) in [
        (MarkKind::Ceiling, 0, 0, true),
        (MarkKind::Ceiling, 1, 0, true),
        (MarkKind::Ceiling, 1, 1, false),
        (MarkKind::Band, 1, 2, true),
        (MarkKind::Band, 1, 0, false),
    ] {
        let mark = find(&figure.data.marks, kind, panel, row);
        assert_eq!(mark.beyond_axis, beyond, "{mark:?}");
    }
}

#[test]
fn marks_come_row_by_row_prefill_first_and_the_bar_before_its_details() {
    let marks = marks(&inputs::quantizations());
    let order = |mark: &Mark| {
        let kind = match mark.kind {
            MarkKind::Bar | MarkKind::Missing => 0,
            MarkKind::Ceiling => 1,
            MarkKind::Band => 2,
            MarkKind::Sample => 3,
            other => panic!("not of this figure: {other:?}"),
        };
        (mark.row, mark.panel, kind, mark.repetition)
    };
    assert!(
        marks
            .windows(2)
            .all(|pair| order(&pair[0]) <= order(&pair[1]))
    );
}

#[test]
fn full_names_are_kept_where_the_picture_shortens_them() {
    let name = "Meta-Llama-3.1-70B-Instruct-abliterated-i1-IQ4_XS";
    let mut input = inputs::quantizations();
    input.rows[0].label = name.into();
    let figure = speeds(&input, &Frame::default()).expect("it is drawn");
    assert_eq!(figure.data.rows[0].label, name);
    let svg = figure.for_screen();
    assert!(
        !svg.contains(name) && svg.contains("…"),
        "the picture has the short form"
    );
}

#[test]
fn overlays_that_are_off_leave_no_mark_and_change_no_title() {
    let mut input = inputs::quantizations();
    let with = speeds(&input, &Frame::default()).expect("it is drawn").data;
    input.overlays.ceiling = false;
    input.overlays.expected = false;
    let without = speeds(&input, &Frame::default()).expect("it is drawn").data;
    assert!(
        !without
            .marks
            .iter()
            .any(|m| matches!(m.kind, MarkKind::Ceiling | MarkKind::Band))
    );
    assert_eq!(with.title, without.title);
    assert!(
        without
            .marks
            .iter()
            .all(|mark| !mark.text.contains("ceiling"))
    );
}

#[test]
fn it_serializes_to_plain_json_and_back() {
    let data = speeds(&inputs::gaps(), &Frame::default())
        .expect("it is drawn")
        .data;
    let json = serde_json::to_value(&data).expect("JSON");
    assert_eq!(json["kind"], "speeds");
    assert_eq!(json["marks"][0]["kind"], "bar");
    assert_eq!(json["marks"][0]["low"], serde_json::Value::Null);
    let back: twospeed_chart::Data = serde_json::from_value(json).expect("the same shape");
    assert_eq!(back.marks.len(), data.marks.len());
}
