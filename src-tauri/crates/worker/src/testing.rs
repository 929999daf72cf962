//! What tests of the settings share.

use twospeed_engine::Settings;
use twospeed_engine::protocol::FailureCode;

use crate::failure::Stopped;

/// The sentence of a setting that is refused.
pub fn message<T>(result: Result<T, Stopped>) -> String {
    match result {
        Err(Stopped::Failed(failure)) => {
            assert_eq!(failure.code, FailureCode::BadSetting);
            failure.message
        }
        Err(Stopped::Cancelled) => panic!("cancelled"),
        Ok(_) => panic!("accepted"),
    }
}

/// The defaults with two threads, changed.
pub fn with(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings {
        n_threads: 2,
        ..Settings::default()
    };
    change(&mut settings);
    settings
}
