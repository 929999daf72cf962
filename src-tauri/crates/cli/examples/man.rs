//! Writes the manual pages of `twospeed` and of each of its commands into a folder:
//! `cargo run --release -p twospeed-cli --example man -- FOLDER`. The package carries them.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("which folder are the pages to go into?")?;
    clap_mangen::generate_to(
        twospeed_cli::command().disable_help_subcommand(true),
        folder,
    )?;
    Ok(())
}
