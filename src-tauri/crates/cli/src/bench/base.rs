//! The file whose predictions those of a quantization are compared with.

use std::path::{Path, PathBuf};

use twospeed_library::display::shown_path;
use twospeed_library::{Item, Limits, arrange, known_places, scan};
use twospeed_measure::model::MeasuredModel;
use twospeed_workbench::Subject;

use super::args::KindArgs;
use super::output::short_name;
use crate::Failure;
use crate::context::Context;
use crate::say::say;

/// Finds the file to compare with.
pub struct Bases {
    /// The file that was named.
    named: Option<MeasuredModel>,
    /// What is on this disk, where none was named.
    found: Vec<Item>,
}

impl Bases {
    /// The file that `--base` names; without it, what lies beside the models and where models are
    /// kept. Nothing is looked for where nothing is compared.
    pub fn find(
        context: &Context,
        args: &KindArgs,
        subjects: &[Subject],
        folders: &[PathBuf],
    ) -> Result<Self, Failure> {
        let mut bases = Self {
            named: None,
            found: Vec::new(),
        };
        if !args.quality || args.no_base {
            return Ok(bases);
        }
        match &args.base {
            Some(path) => bases.named = Some(measured(&context.model_path(path)?)?),
            None => bases.found = look(context, subjects, folders),
        }
        Ok(bases)
    }

    /// What `subject` is compared with; `None` where it is the best there is, or the only one.
    pub fn of(&self, subject: &Subject) -> Option<MeasuredModel> {
        if let Some(named) = &self.named {
            return Some(named.clone());
        }
        let item = best(&self.found, &subject.header.path)?;
        let model = measured(&item.path).ok()?;
        say(format!(
            "{} is held against {} ({}): the most bits of the same model found here.",
            short_name(&subject.measured),
            short_name(&model),
            shown_path(&item.path)
        ));
        Some(model)
    }
}

fn measured(path: &Path) -> Result<MeasuredModel, Failure> {
    // The engine runs in another folder than ours.
    let path = std::path::absolute(path).map_err(Failure::of)?;
    let subject = Subject::read(&path).map_err(Failure::of)?;
    Ok(subject.measured)
}

fn look(context: &Context, subjects: &[Subject], folders: &[PathBuf]) -> Vec<Item> {
    let beside = |subject: &Subject| {
        let path = std::path::absolute(&subject.header.path).ok()?;
        path.parent().map(Path::to_owned)
    };
    let mut places: Vec<PathBuf> = subjects.iter().filter_map(beside).collect();
    places.extend_from_slice(folders);
    if let Ok(home) = context.home() {
        places.extend(known_places(&home, |name| std::env::var_os(name)));
    }
    places.sort();
    places.dedup();
    scan(&places, Limits::default(), &[], &|| true, &mut |_| {}).items
}

/// Of the files that hold the same model as the one at `path` the one with the most bits per
/// weight, where that is another.
fn best<'a>(items: &'a [Item], path: &Path) -> Option<&'a Item> {
    let same = |item: &Item| match (item.path.canonicalize(), path.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    let shelf = arrange(items);
    let group = shelf
        .groups
        .iter()
        .find(|group| group.members.iter().any(|&member| same(&items[member])))?;
    let bits = |item: &Item| item.model().and_then(|model| model.bits_per_weight);
    let members = group.members.iter().map(|&member| &items[member]);
    let known = members.clone().find(|item| same(item)).and_then(bits)?;
    // Members stand by their bits per weight.
    let best = members.rev().find(|item| item.hindrance().is_none())?;
    bits(best).is_some_and(|bits| bits > known).then_some(best)
}

#[cfg(test)]
mod tests {
    use std::io::{BufWriter, Write};

    use twospeed_library::{FileType, LlamaShape};

    use super::*;

    fn write(path: &Path, name: &str, file_type: FileType) {
        let shape = LlamaShape {
            width: 256,
            layers: 1,
            heads: 4,
            kv_heads: 4,
            feed_forward: 512,
            vocabulary: 512,
            context: 2048,
        };
        let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
        let model = shape.model(name, file_type, 1);
        model.write(&mut file, &mut |_, _| true).unwrap();
        file.flush().unwrap();
    }

    #[test]
    fn the_base_is_the_file_of_the_same_model_with_the_most_bits() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(&at("a-Q4_0.gguf"), "Alpha", FileType::Q4_0);
        write(&at("a-Q8_0.gguf"), "Alpha", FileType::Q8_0);
        write(&at("a-F16.gguf"), "Alpha", FileType::F16);
        write(&at("b-Q8_0.gguf"), "Beta", FileType::Q8_0);
        let found = || {
            scan(
                &[folder.path().into()],
                Limits::default(),
                &[],
                &|| true,
                &mut |_| {},
            )
        };
        let base = |items: &[Item], name: &str| {
            best(items, &at(name)).map(|item| item.path.file_name().unwrap().to_owned())
        };
        let items = found().items;
        assert_eq!(base(&items, "a-Q4_0.gguf"), Some("a-F16.gguf".into()));
        assert_eq!(base(&items, "a-F16.gguf"), None, "nothing is better");
        assert_eq!(base(&items, "b-Q8_0.gguf"), None, "it is the only one");
        // A file that is cut off predicts nothing.
        let file = std::fs::File::options().write(true).open(at("a-F16.gguf"));
        file.unwrap().set_len(200_000).unwrap();
        let items = found().items;
        assert_eq!(base(&items, "a-Q4_0.gguf"), Some("a-Q8_0.gguf".into()));
    }
}
