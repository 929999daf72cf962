//! The pictures, line by line: a change here is a change that people see. Look at it (the example
//! `speeds` draws all of them), then accept it.

mod inputs;

use twospeed_chart::{Frame, Speeds, speeds};

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
