//! The pictures, line by line: a change here is a change that people see. Look at it (the example
//! `speeds`, `figures` and `predictions` draw all of them), then accept it.

mod inputs;

use inputs::{curves, predictions, rows};
use twospeed_chart::{
    Frame, Speeds, breakdown, context, estimates, first_token, quantization, roofline, speeds,
    sustained, users,
};

fn screen(input: &Speeds) -> String {
    speeds(input, &Frame::default())
        .expect("it is drawn")
        .for_screen()
}

#[test]
fn quantizations_of_one_model() {
    insta::assert_snapshot!(screen(&inputs::quantizations()));
}

#[test]
fn three_models() {
    insta::assert_snapshot!(screen(&inputs::three_models()));
}

#[test]
fn one_model() {
    insta::assert_snapshot!(screen(&inputs::one_model()));
}

#[test]
fn gaps() {
    insta::assert_snapshot!(screen(&inputs::gaps()));
}

#[test]
fn far_off() {
    insta::assert_snapshot!(screen(&inputs::far_off()));
}

#[test]
fn hostile() {
    insta::assert_snapshot!(screen(&inputs::hostile()));
}

#[test]
fn context_of_three_settings() {
    let figure = context(&curves::context_of_three(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn users_at_once() {
    let figure = users(&curves::users(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn ten_minutes() {
    let figure = sustained(&curves::sustained(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn waits_for_a_first_token() {
    let figure = first_token(&rows::first_token(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn quantizations_with_their_quality() {
    let figure = quantization(&rows::quantizations_with_quality(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn a_strip_of_what_expected_time_is_made_of() {
    insta::assert_snapshot!(screen(&inputs::with_breakdown(inputs::quantizations())));
}

#[test]
fn steps_under_a_roof() {
    let figure = roofline(&predictions::roofline(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn steps_of_four_models() {
    let figure = roofline(&predictions::roofline_of_four(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn where_time_goes() {
    let figure = breakdown(&predictions::breakdown(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}

#[test]
fn expected_beside_measured() {
    let figure = estimates(&predictions::estimates(), &Frame::default());
    insta::assert_snapshot!(figure.expect("it is drawn").for_screen());
}
