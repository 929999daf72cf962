//! The program as it is started in a terminal where there is nothing to open a window on.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn start(arguments: &[&str]) -> Output {
    let data = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_twospeed-window"))
        .args(arguments)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env("XDG_RUNTIME_DIR", data.path())
        .env("TWOSPEED_DATA_DIR", data.path())
        .env("DBUS_SESSION_BUS_ADDRESS", "disabled:")
        .output()
        .unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn without_a_screen_one_sentence_says_what_to_do() {
    let output = start(&[]);
    let complaint = complaint(&output);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(
        complaint.starts_with("There is no screen to open the window on."),
        "{complaint}"
    );
    assert!(!complaint.contains("panicked"), "{complaint}");
}

#[test]
fn help_and_a_wrong_argument_need_no_screen() {
    let help = start(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: twospeed-window"));
    let wrong = start(&["--nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(complaint(&wrong).contains("--nonsense"));
}
