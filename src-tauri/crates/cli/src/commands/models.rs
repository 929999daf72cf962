//! `twospeed models`: the models of a folder.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use twospeed_estimate::Bytes;
use twospeed_library::display::{shown, shown_path};
use twospeed_library::{Item, Limits, Scan, arrange, known_places, scan};

use super::inspect::count;
use crate::Failure;
use crate::context::Context;
use crate::say::say;
use crate::table::Table;

/// Arguments of `models`.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Folders to look through [default: where other programs keep their models]
    folders: Vec<PathBuf>,
    /// All facts as JSON
    #[arg(long)]
    json: bool,
}

/// Lists models, what goes with them, and files that cannot be read.
pub fn run(context: &Context, args: &ModelsArgs) -> Result<(), Failure> {
    let folders = if args.folders.is_empty() {
        let mut folders = known_places(&context.home()?, |name| std::env::var_os(name));
        folders.retain(|folder| folder.is_dir());
        folders
    } else {
        args.folders.clone()
    };
    let found = scan(&folders, Limits::default(), &[], &|| true, &mut |_| {});
    for note in &found.notes {
        say(note);
    }
    if found.items.is_empty() && found.notes.is_empty() {
        say(match args.folders.is_empty() {
            true => {
                "No GGUF file was found where other programs keep theirs. Name a folder: twospeed models FOLDER"
            }
            false => "No GGUF file was found there.",
        });
    }
    let mut out = std::io::stdout().lock();
    let written = if args.json {
        let items: Vec<_> = found.items.iter().map(item).collect();
        writeln!(out, "{:#}", json!(items))
    } else {
        words(&mut out, &found)
    };
    written.map_err(|error| Failure::of_output(&error))?;
    match found.notes.first() {
        Some(_) if found.items.is_empty() && args.folders.len() == found.notes.len() => {
            Err(Failure::Said)
        }
        _ => Ok(()),
    }
}

fn item(item: &Item) -> serde_json::Value {
    let mut facts = match item.model() {
        Some(model) => json!(model),
        None => json!({}),
    };
    facts["path"] = json!(item.path.to_string_lossy());
    facts["label"] = json!(item.label);
    facts["problem"] = json!(item.hindrance());
    facts
}

fn words(out: &mut dyn Write, found: &Scan) -> std::io::Result<()> {
    let shelf = arrange(&found.items);
    for group in &shelf.groups {
        let active = match group.active_parameters {
            Some(active) if active != group.parameters => {
                format!(", {} active per token", count(active))
            }
            _ => String::new(),
        };
        writeln!(
            out,
            "{} ({} parameters{active})",
            group.name,
            count(group.parameters)
        )?;
        let mut table = Table::new(&["  quantization", ">size", "file"]);
        for member in &group.members {
            let item = &found.items[*member];
            let label = item.model().and_then(|model| model.quantization.clone());
            table.row(vec![
                format!(
                    "  {}",
                    label.as_deref().map_or_else(|| "unknown".into(), shown)
                ),
                Bytes(item.bytes()).decimal().to_string(),
                place(item),
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
    }
    for (heading, list) in [
        ("Beside models", &shelf.helpers),
        ("Not usable", &shelf.broken),
    ] {
        if list.is_empty() {
            continue;
        }
        writeln!(out, "{heading}")?;
        for index in list {
            writeln!(out, "  {}", place(&found.items[*index]))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Where it lies; of one that cannot be run the sentence why, which begins with that.
fn place(item: &Item) -> String {
    item.hindrance().unwrap_or_else(|| shown_path(&item.path))
}
