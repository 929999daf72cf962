//! The `first_token` figure: what the wait for the first token consists of.

mod draw;
mod finding;
mod readout;

use crate::Error;
use crate::curves::Name;
use crate::data::{self, Data};
use crate::figure::{Figure, Frame};
use crate::layout;
use crate::measured::{Measured, sound, sound_measured};
use crate::palette::Role;
use crate::rows::{Names, label_column};
use crate::scene::Scene;
use crate::text;
use draw::Section;

/// What the figure shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FirstToken {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was measured.
    pub subtitle: String,
    /// The waits from top to bottom; those that begin alike stand together.
    pub waits: Vec<Wait>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// What is waited for: two beginnings, told apart since their times are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// From asking for a model whose file was not in the page cache.
    Cold,
    /// From asking for a model whose file was in the page cache.
    Warm,
    /// From asking for a model, the page cache being as it was.
    AsItWas,
    /// A prompt that the cache knows nothing of, sent to a loaded model.
    New,
    /// The same prompt again.
    Repeated,
    /// The same prompt with another tail.
    ChangedTail,
}

impl Request {
    /// As a row's name.
    fn words(self) -> &'static str {
        match self {
            Self::Cold => "Cold start",
            Self::Warm => "Warm start",
            Self::AsItWas => "Start",
            Self::New => "New prompt",
            Self::Repeated => "Repeated",
            Self::ChangedTail => "Changed tail",
        }
    }

    /// Whether the model is loaded first.
    pub fn loads(self) -> bool {
        matches!(self, Self::Cold | Self::Warm | Self::AsItWas)
    }
}

/// A part of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Loading the model.
    Load,
    /// Making the context.
    Context,
    /// Tokenizing the prompt.
    Tokenize,
    /// Computing the prompt's tokens that were not in the cache.
    Prefill,
    /// Sampling the first token.
    FirstSample,
    /// Decoding and sampling the second: the wait is over before.
    FirstDecode,
}

impl Part {
    fn words(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Context => "context",
            Self::Tokenize => "tokenize",
            Self::Prefill => "prefill",
            Self::FirstSample => "first sample",
            Self::FirstDecode => "then first decode",
        }
    }

    /// Colours of its shape and of its words.
    fn roles(self) -> (Role, Role) {
        match self {
            Self::Load => (Role::InkThird, Role::InkSecond),
            Self::Context => (Role::BandEdge, Role::InkThird),
            Self::Tokenize | Self::FirstSample => (Role::Ink, Role::Ink),
            Self::Prefill => (Role::Prefill, Role::PrefillInk),
            Self::FirstDecode => (Role::Decode, Role::DecodeInk),
        }
    }
}

/// One wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// The model under its settings.
    pub name: Name,
    /// What is waited for.
    pub request: Request,
    /// From its beginning to the first token, milliseconds.
    pub total_ms: Option<Measured>,
    /// Means of its parts in milliseconds, in the order they happen.
    pub parts: Vec<(Part, f64)>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Of those, taken from the cache.
    pub reused_tokens: u64,
}

/// A wait made fit to draw.
#[derive(Debug, Clone)]
struct Prepared {
    names: Names,
    request: Request,
    total: Option<Measured>,
    parts: Vec<(Part, f64)>,
    prompt: u64,
    reused: u64,
}

fn prepare(input: &FirstToken) -> Vec<Prepared> {
    let all: Vec<Names> = input.waits.iter().map(|wait| wait.name.names()).collect();
    let several = all.iter().any(|name| *name != all[0]);
    let mut rows: Vec<Prepared> = input
        .waits
        .iter()
        .zip(&all)
        .map(|(wait, name)| Prepared {
            names: Names {
                group: None,
                label: wait.request.words().to_owned(),
                details: if several {
                    vec![crate::curves::spoken(name, &all)]
                } else {
                    Vec::new()
                },
            },
            request: wait.request,
            total: wait.total_ms.as_ref().and_then(sound_measured),
            parts: wait
                .parts
                .iter()
                .copied()
                .filter(|(_, ms)| sound(*ms))
                .collect(),
            prompt: wait.prompt_tokens,
            reused: wait.reused_tokens.min(wait.prompt_tokens),
        })
        .collect();
    // Those that load stand above those that do not; within, the order is the given one.
    rows.sort_by_key(|row| !row.request.loads());
    rows
}

/// Draws the figure: for each wait a bar of its parts; where prompts were kept in the cache, what
/// of them was computed and what reused.
///
/// Errors: [`Error::Empty`] where nothing was measured.
pub fn first_token(input: &FirstToken, frame: &Frame) -> Result<Figure, Error> {
    let rows = prepare(input);
    if rows.iter().all(|row| row.total.is_none()) {
        return Err(Error::Empty);
    }
    let title = finding::finding(&rows, &text::clean(&input.subject));
    let subtitle = text::clean(&input.subtitle);
    let statements: Vec<String> = input.footer.iter().map(|line| text::clean(line)).collect();
    let width = frame.inner_width();
    let mut scene = Scene::default();
    let header = layout::header(&mut scene, &title, &subtitle, width);

    let loads = rows.iter().filter(|row| row.request.loads()).count();
    let names: Vec<_> = rows.iter().map(|row| &row.names).collect();
    let left = label_column(&names, width);
    let mut top = header + 40.0;
    let mut sections = Vec::new();
    for (first, rows) in [(0, &rows[..loads]), (loads, &rows[loads..])] {
        if rows.is_empty() {
            continue;
        }
        let section = Section::draw(&mut scene, rows, first, top, (left, width));
        top = section.last() + 38.0;
        sections.push(section);
    }
    let last = sections.last().map_or(header, Section::last);
    let last = draw::explain(&mut scene, &sections, last, width);
    let height = layout::footer(&mut scene, &statements, last, width);
    let (panels, marks) = readout::data(&rows, &sections);
    let data = Data {
        kind: "first_token".to_owned(),
        width,
        height,
        title,
        subtitle,
        footer: statements,
        panels,
        rows: rows.iter().map(|row| row.names.data()).collect(),
        marks: data::numbered(marks),
    };
    Figure::draw(&scene, data, frame.scale())
}
