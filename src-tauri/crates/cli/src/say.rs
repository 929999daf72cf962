//! Words to the person, on standard error.

use std::fmt::Display;
use std::io::Write;

/// Says a line. Where nobody listens any more (a closed pipe, a full disk) it is lost, and the work
/// goes on: what is measured matters more than what is said about it.
pub fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
