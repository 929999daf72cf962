//! What the program was started with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;

/// Prefill and decode of local language models, measured and explained.
#[derive(Debug, Parser)]
#[command(name = "twospeed-window", version)]
pub struct Arguments {
    /// Folder of the results and the settings
    #[arg(
        long,
        value_name = "FOLDER",
        env = "TWOSPEED_DATA_DIR",
        hide_env = true
    )]
    data_dir: Option<OsString>,

    /// Models to open: GGUF files or folders of them
    #[arg(value_name = "FILE")]
    files: Vec<OsString>,
}

impl Arguments {
    /// The data folder that was named; an empty name is none.
    pub fn data_dir(&self) -> Option<PathBuf> {
        self.data_dir
            .clone()
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
    }

    /// The files to open, as absolute paths: whoever opens them may stand in another folder.
    pub fn files(&self, current: &Path) -> Vec<PathBuf> {
        self.files.iter().map(|name| current.join(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Arguments {
        Arguments::try_parse_from([&["twospeed-window"], arguments].concat()).unwrap()
    }

    #[test]
    fn files_become_absolute_where_the_program_was_started() {
        let arguments = parse(&["a.gguf", "/models/b.gguf"]);
        assert_eq!(
            arguments.files(Path::new("/home/me")),
            [
                PathBuf::from("/home/me/a.gguf"),
                PathBuf::from("/models/b.gguf")
            ]
        );
    }

    #[test]
    fn an_empty_data_folder_is_none() {
        assert_eq!(parse(&["--data-dir="]).data_dir(), None);
        assert_eq!(
            parse(&["--data-dir=/tmp/x", "--", "-odd-.gguf"]).data_dir(),
            Some(PathBuf::from("/tmp/x"))
        );
    }
}
