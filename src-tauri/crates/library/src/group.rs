//! The list of models as a person thinks of it: a model, and below it its quantizations.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use twospeed_gguf::Model;

use crate::display::shown;
use crate::item::{Item, Role};
use crate::names;
use crate::synthetic::is_synthetic;

/// The items of a scan in their places. Numbers are indices into the list that was arranged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shelf {
    /// Models, the smallest first.
    pub groups: Vec<Group>,
    /// What goes with a model or holds none.
    pub helpers: Vec<usize>,
    /// What cannot be read.
    pub broken: Vec<usize>,
}

/// One model in its quantizations.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name without a quantization, safe to show.
    pub name: String,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Elements of all tensors; of the first member where they differ (a tied output written out).
    pub parameters: u64,
    /// Those that one token uses.
    pub active_parameters: Option<u64>,
    /// The context it was trained for.
    pub context_length: Option<u64>,
    /// Made here of random weights: its speed is real, its text is noise.
    pub synthetic: bool,
    /// Its files, the fewest bits per weight first.
    pub members: Vec<usize>,
}

/// How far the parameters of one model's files lie apart at most: an output matrix that is
/// written out in one file and shared in another is some percent of a small model.
const SAME_SIZE: f64 = 1.25;

/// Puts the items of a scan into their places.
///
/// Two files belong to one model when architecture, name without quantization and (roughly) the
/// number of parameters agree. `general.base_model` is not asked: it names what a model was tuned
/// *from*, and a tuned model beside its base is two models. Some converters give many models one
/// name ("LLaMA v2"): files of one quantization whose file names disagree too are kept apart.
pub fn arrange<I: Borrow<Item>>(items: &[I]) -> Shelf {
    let mut shelf = Shelf::default();
    let mut alike: BTreeMap<(Option<&str>, String), Vec<Member>> = BTreeMap::new();
    for (index, item) in items.iter().map(Borrow::borrow).enumerate() {
        match (item.role(), item.model()) {
            (Role::Model, Some(model)) => alike
                .entry((model.architecture.as_deref(), names::key(&model.name)))
                .or_default()
                .push(Member { index, item, model }),
            (Role::Helper, _) => shelf.helpers.push(index),
            _ => shelf.broken.push(index),
        }
    }
    shelf.groups = alike
        .into_values()
        .flat_map(by_size)
        .flat_map(by_file_name)
        .map(|(members, name)| group(members, name))
        .collect();
    shelf
        .groups
        .sort_by(|a, b| (a.parameters, &a.name).cmp(&(b.parameters, &b.name)));
    shelf
}

#[derive(Clone, Copy)]
struct Member<'a> {
    index: usize,
    item: &'a Item,
    model: &'a Model,
}

impl<'a> Member<'a> {
    /// The file's name without its extension.
    fn stem(&self) -> &'a str {
        let label = self.item.label.as_str();
        label.strip_suffix(".gguf").unwrap_or(label)
    }
}

/// Parts members of one name by their number of parameters.
fn by_size(mut members: Vec<Member>) -> Vec<Vec<Member>> {
    members.sort_by_key(|m| (m.model.parameters, m.index));
    let mut clusters: Vec<Vec<Member>> = Vec::new();
    for member in members {
        let fits = |cluster: &Vec<Member>| {
            let smallest = cluster.first().map_or(0, |m| m.model.parameters);
            member.model.parameters as f64 <= smallest as f64 * SAME_SIZE
        };
        match clusters.last_mut().filter(|cluster| fits(cluster)) {
            Some(cluster) => cluster.push(member),
            None => clusters.push(vec![member]),
        }
    }
    clusters
}

/// Which of its names a group goes by.
#[derive(Clone, Copy)]
enum NameOf {
    Header,
    File,
}

/// Parts members by file name where two of one quantization are called differently.
fn by_file_name(members: Vec<Member>) -> Vec<(Vec<Member>, NameOf)> {
    let mut files: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for member in &members {
        files
            .entry(names::key(member.stem()))
            .or_default()
            .push(*member);
    }
    let mut once = BTreeSet::new();
    let collide = files
        .values()
        .flat_map(|alike| {
            let quantizations: BTreeSet<_> = alike.iter().map(|m| &m.model.quantization).collect();
            quantizations
        })
        .any(|quantization| !once.insert(quantization));
    if collide {
        files.into_values().map(|m| (m, NameOf::File)).collect()
    } else {
        vec![(members, NameOf::Header)]
    }
}

fn group(mut members: Vec<Member>, name: NameOf) -> Group {
    members.sort_by(|a, b| {
        let bits = |m: &Member| m.model.bits_per_weight.unwrap_or(f64::INFINITY);
        bits(a)
            .total_cmp(&bits(b))
            .then_with(|| a.item.path.cmp(&b.item.path))
    });
    let names: Vec<&str> = members
        .iter()
        .map(|member| match name {
            // The name of a model made here says so, and a file's name may not.
            NameOf::File if !is_synthetic(member.model) => member.stem(),
            _ => member.model.name.as_str(),
        })
        .collect();
    // One with spaces was given by a person, the others are file names.
    let given = names.iter().find(|name| name.trim().contains(' '));
    let name = given.or(names.first()).copied().unwrap_or_default();
    let known = |of: fn(&Model) -> Option<u64>| members.iter().find_map(|m| of(m.model));
    let first = members.first().map(|member| member.model);
    Group {
        name: shown(&names::without_quantization(name)),
        architecture: first.and_then(|model| model.architecture.clone()),
        parameters: first.map_or(0, |model| model.parameters),
        active_parameters: known(|model| model.active_parameters),
        context_length: known(|model| model.context_length),
        synthetic: first.is_some_and(is_synthetic),
        members: members.iter().map(|member| member.index).collect(),
    }
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::{TensorType, Writer, read_from};

    use super::*;
    use crate::item::Reading;
    use crate::synthetic::SYNTHETIC;

    /// What a header says, for a test.
    #[derive(Clone, Copy)]
    struct Says<'a> {
        file: &'a str,
        name: &'a str,
        architecture: &'a str,
        /// `general.file_type` and the type of the only matrix, of 256 x `rows` weights.
        quantization: (u32, TensorType),
        rows: u64,
        synthetic: bool,
    }

    const Q4_0: (u32, TensorType) = (2, TensorType::Q4_0);
    const Q8_0: (u32, TensorType) = (7, TensorType::Q8_0);
    const F16: (u32, TensorType) = (1, TensorType::F16);

    const SMOL: Says = Says {
        file: "SmolLM2-135M-Instruct.Q8_0.gguf",
        name: "SmolLM2 135M Instruct",
        architecture: "llama",
        quantization: Q8_0,
        rows: 100,
        synthetic: false,
    };

    fn item(says: Says) -> Item {
        let mut writer = Writer::new();
        writer.set("general.architecture", says.architecture);
        writer.set("general.name", says.name);
        writer.set(SYNTHETIC, says.synthetic);
        writer.set("general.file_type", says.quantization.0);
        let key = format!("{}.block_count", says.architecture);
        writer.set(key.as_str(), 1u32);
        let shape = [256, says.rows];
        writer
            .tensor("blk.0.attn_q.weight", says.quantization.1, &shape)
            .unwrap();
        let header = writer.header();
        let bytes = header.len() as u64 + writer.tensors()[0].bytes;
        let model = read_from(&header[..], says.file, bytes).unwrap();
        Item {
            path: says.file.into(),
            label: says.file.rsplit('/').next().unwrap().into(),
            files: Vec::new(),
            reading: Reading::Read(Box::new(model)),
        }
    }

    /// Names of the groups with the quantizations of their members.
    fn arranged(items: &[Item]) -> Vec<(String, Vec<String>)> {
        arrange(items)
            .groups
            .into_iter()
            .map(|group| {
                let label = |index: &usize| items[*index].model()?.quantization.clone();
                let members = group.members.iter().filter_map(label).collect();
                (group.name, members)
            })
            .collect()
    }

    fn group_of(name: &str, members: &[&str]) -> (String, Vec<String>) {
        (name.into(), members.iter().map(|m| (*m).into()).collect())
    }

    #[test]
    fn quantizations_of_a_model_stand_below_it_the_smallest_first() {
        let items = [F16, Q4_0, Q8_0].map(|quantization| {
            item(Says {
                quantization,
                ..SMOL
            })
        });
        assert_eq!(
            arranged(&items),
            [group_of("SmolLM2 135M Instruct", &["Q4_0", "Q8_0", "F16"])]
        );
    }

    #[test]
    fn a_file_whose_header_has_no_name_joins_by_its_own() {
        let unnamed = Says {
            file: "SmolLM2-135M-Instruct.Q4_0.gguf",
            name: "model",
            quantization: Q4_0,
            ..SMOL
        };
        assert_eq!(
            arranged(&[item(unnamed), item(SMOL)]),
            [group_of("SmolLM2 135M Instruct", &["Q4_0", "Q8_0"])]
        );
    }

    #[test]
    fn sizes_and_architectures_of_one_name_are_models_of_their_own() {
        let large = Says { rows: 1000, ..SMOL };
        let other = Says {
            architecture: "qwen2",
            ..SMOL
        };
        assert_eq!(arranged(&[item(SMOL), item(large), item(other)]).len(), 3);
    }

    #[test]
    fn an_output_that_is_written_out_does_not_make_another_model() {
        let untied = Says {
            rows: 120,
            quantization: F16,
            ..SMOL
        };
        assert_eq!(
            arranged(&[item(untied), item(SMOL)]),
            [group_of("SmolLM2 135M Instruct", &["Q8_0", "F16"])]
        );
    }

    #[test]
    fn a_converters_word_for_many_models_does_not_make_them_one() {
        let tuned = |file, quantization| {
            item(Says {
                file,
                name: "LLaMA v2",
                quantization,
                ..SMOL
            })
        };
        let items = [
            tuned("wizard-7b.Q4_0.gguf", Q4_0),
            tuned("wizard-7b.Q8_0.gguf", Q8_0),
            tuned("orca-7b.Q4_0.gguf", Q4_0),
        ];
        assert_eq!(
            arranged(&items),
            [
                group_of("orca 7b", &["Q4_0"]),
                group_of("wizard 7b", &["Q4_0", "Q8_0"])
            ]
        );
    }

    #[test]
    fn a_model_made_here_is_labelled_whatever_its_file_is_called() {
        let made = |file| {
            item(Says {
                file,
                name: "Made here (random weights)",
                synthetic: true,
                ..SMOL
            })
        };
        let shelf = arrange(&[made("a.gguf"), made("b.gguf"), item(SMOL)]);
        let labelled = |group: &Group| (group.synthetic, group.name.contains("(random weights)"));
        let labels: Vec<_> = shelf.groups.iter().map(labelled).collect();
        assert_eq!(labels, [(true, true), (true, true), (false, false)]);
    }

    #[test]
    fn two_copies_of_a_file_are_one_model() {
        let copy = Says {
            file: "elsewhere/SmolLM2-135M-Instruct.Q8_0.gguf",
            ..SMOL
        };
        assert_eq!(
            arranged(&[item(SMOL), item(copy)]),
            [group_of("SmolLM2 135M Instruct", &["Q8_0", "Q8_0"])]
        );
    }

    #[test]
    fn models_come_by_size_and_then_by_name() {
        let called = |name, rows| item(Says { name, rows, ..SMOL });
        let items = [called("B", 10), called("C", 900), called("A", 10)];
        let names: Vec<String> = arranged(&items).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "C"]);
    }

    #[test]
    fn helpers_and_broken_files_have_places_of_their_own() {
        let projector = Says {
            architecture: "clip",
            ..SMOL
        };
        let broken = Item {
            reading: Reading::Broken("x.gguf is empty.".into()),
            ..item(SMOL)
        };
        let shelf = arrange(&[item(projector), broken, item(SMOL)]);
        assert_eq!(shelf.helpers, [0]);
        assert_eq!(shelf.broken, [1]);
        assert_eq!(shelf.groups[0].members, [2]);
    }

    #[test]
    fn a_name_that_means_harm_is_shown_harmless() {
        let harm = Says {
            name: "a\u{202e}b <script>",
            ..SMOL
        };
        assert_eq!(arranged(&[item(harm)])[0].0, "a<U+202E>b <script>");
    }
}
