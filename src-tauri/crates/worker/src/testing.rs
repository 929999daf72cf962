//! What tests share.

use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use twospeed_engine::Settings;
use twospeed_engine::protocol::FailureCode;

use crate::failure::Stopped;
use crate::model::Model;
use crate::model_params::ModelParams;
use crate::{backend, os};

/// A tiny model of which the project has the header: with zeros for weights it computes nothing of
/// interest, and remembers and reads as the real ones do. `bytes` is the size of the whole file.
pub fn tiny_model(name: &str, bytes: u64) -> Rc<Model> {
    backend::for_tests();
    let header = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/data/gguf/archs")
        .join(format!("{name}.header.gguf"));
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("twospeed-{}-{number}.gguf", std::process::id()));
    fs::copy(header, &path).unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(bytes)
        .unwrap();
    let params = ModelParams::new(&Settings::default()).unwrap();
    // SAFETY: `params` lives until the model is loaded.
    let model = unsafe { Model::load(&os::engine_path(path.as_os_str()).unwrap(), params.raw()) };
    fs::remove_file(&path).unwrap();
    Rc::new(model.unwrap())
}

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
