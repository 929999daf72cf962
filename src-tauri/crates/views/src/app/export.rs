//! What is shown, in every form it is handed out in.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use twospeed_chart::{Figure, Frame, PngSize, Theme};
use twospeed_history::WholeRun;
use twospeed_history::llama_bench::{self, Row};
use twospeed_history::tables::{self, TableForm};
use twospeed_workbench::{Bar, FigureKind, Source, figures, save};

use super::App;
use super::compare::{Beside, Chosen, draw, drawn, history_problem, nothing_to_draw};
use super::figure::{kind, predicted_kind};
use crate::Problem;
use crate::compare::*;

/// Longest name that a file is suggested.
const LONGEST_NAME: usize = 80;

/// The ending of a form's files.
fn ending(form: Form) -> &'static str {
    match form {
        Form::Svg => "svg",
        Form::Png => "png",
        Form::Pdf => "pdf",
        Form::Csv => "csv",
        Form::Markdown => "md",
        Form::Json => "json",
    }
}

const FORMS: [Form; 6] = [
    Form::Svg,
    Form::Png,
    Form::Pdf,
    Form::Csv,
    Form::Markdown,
    Form::Json,
];

/// The path with the form's ending: added where there is none, in place of another form's. Dots
/// within names stay: `Qwen2.5` has no ending.
fn with_ending(path: &Path, form: Form) -> PathBuf {
    let has = |form: Form| {
        path.extension()
            .is_some_and(|has| has.eq_ignore_ascii_case(ending(form)))
    };
    if has(form) {
        return path.to_owned();
    }
    if FORMS.into_iter().any(has) {
        return path.with_extension(ending(form));
    }
    twospeed_library::landing::beside(path, &format!(".{}", ending(form)))
}

/// A file name for a subject: letters, digits and what is harmless in a name everywhere.
pub(super) fn file_name(subject: &str, figure: FigureName) -> String {
    let kind = match figure {
        FigureName::Speeds => "speeds",
        FigureName::Context => "context",
        FigureName::Users => "users",
        FigureName::FirstToken => "first token",
        FigureName::Quantization => "quantization",
        FigureName::Sustained => "sustained",
        FigureName::Roofline => "roofline",
        FigureName::Breakdown => "breakdown",
        FigureName::Estimate => "estimate",
    };
    let harmless = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | '(' | ')');
    let safe: String = subject
        .chars()
        .map(|c| if harmless(c) { c } else { ' ' })
        .collect();
    let words: Vec<&str> = safe.split_whitespace().collect();
    let short: String = words.join(" ").chars().take(LONGEST_NAME).collect();
    let name = short.trim_matches(|c: char| matches!(c, ' ' | '.' | '-'));
    match name.is_empty() {
        true => format!("Twospeed {kind}"),
        // A word behind it: some names alone are devices on Windows.
        false => format!("{name} {kind}"),
    }
}

/// The numbers of llama-bench's tests in one of its formats, in the order of the figure.
fn speeds_table(form: TableForm, sources: &[Source<'_>]) -> Result<Vec<u8>, Problem> {
    let format = match form {
        TableForm::Csv => "csv",
        TableForm::Markdown => "md",
    };
    let unknown = || Problem::new("not_written", "This form is not known.");
    let mut format = llama_bench::format(format).ok_or_else(unknown)?;
    let tests = sources.iter().flat_map(|source| &source.tests);
    let rows: Vec<Row> = tests.filter_map(|test| Row::of_test(test)).collect();
    let mut text = Vec::new();
    llama_bench::write(format.as_mut(), &rows, &mut text).map_err(|error| not_written(&error))?;
    Ok(text)
}

fn not_written(error: &std::io::Error) -> Problem {
    Problem::new(
        "not_written",
        format!("The numbers cannot be written: {error}."),
    )
}

/// The numbers of a figure as a table: those that are speeds as llama-bench has them, each other
/// kind below with its own columns.
fn table(form: TableForm, kind: FigureKind, sources: &[Source<'_>]) -> Result<Vec<u8>, Problem> {
    let mut tables = Vec::new();
    for key in kind.kinds() {
        let of = of_kind(key, sources);
        if of.is_empty() {
            continue;
        }
        if *key == "speed" {
            tables.push(speeds_table(form, &of)?);
            continue;
        }
        let runs: Vec<WholeRun> = of.iter().map(alone).collect();
        let mut text = Vec::new();
        tables::write(key, form, &runs, &mut text).map_err(|error| not_written(&error))?;
        tables.push(text);
    }
    Ok(tables.join(&b'\n'))
}

/// The sources with their tests of a kind alone; without those that have none.
fn of_kind<'a>(key: &str, sources: &[Source<'a>]) -> Vec<Source<'a>> {
    sources
        .iter()
        .map(|source| Source {
            run: source.run,
            tests: source
                .tests
                .iter()
                .copied()
                .filter(|test| test.record.kind.key() == key)
                .collect(),
        })
        .filter(|source| !source.tests.is_empty())
        .collect()
}

/// A run with the tests of a source alone.
fn alone(source: &Source<'_>) -> WholeRun {
    WholeRun {
        run: source.run.run.clone(),
        plan: None,
        tests: source.tests.iter().copied().cloned().collect(),
        unreadable: Vec::new(),
    }
}

/// What the numbers of a figure are taken from: its results, and what of other runs it shows too.
fn numbers<'a>(chosen: &'a Chosen, figure: FigureName) -> Vec<Source<'a>> {
    if figure == FigureName::Speeds || figure.is_expected() {
        return chosen.bars().iter().map(Bar::source).collect();
    }
    let mut sources = chosen.sources(figure);
    if figure == FigureName::Quantization {
        for source in &mut sources {
            let fingerprint = &source.model().fingerprint;
            let quality = figures::newest_quality(chosen.runs(), fingerprint);
            source.tests.extend(quality.filter(|test| {
                !source
                    .tests
                    .iter()
                    .any(|other| other.record.id == test.record.id)
            }));
        }
    }
    sources
}

/// The figure at the size that was asked for, as `twospeed chart` draws it.
fn figure(chosen: &Chosen, request: &ExportRequest) -> Result<Figure, Problem> {
    let frame = Frame {
        width: request.width * request.scale,
        height: None,
        scale: request.scale,
    };
    if request.figure == FigureName::Speeds {
        let bars = chosen.bars();
        return draw(&chosen.speeds(&bars, Beside::of_export(request))?, &frame);
    }
    if let Some(kind) = predicted_kind(request.figure) {
        let input = chosen.predicted(kind, request.breakdown)?.0;
        return drawn(input.draw(&frame));
    }
    let sources = chosen.sources(request.figure);
    drawn(chosen.input(request.figure, &sources)?.draw(&frame))
}

fn theme(dark: bool) -> Theme {
    if dark { Theme::Dark } else { Theme::Light }
}

fn picture(figure: &Figure, request: &ExportRequest) -> Result<Vec<u8>, Problem> {
    figure
        .to_png(theme(request.dark), PngSize::Scale(request.pixels))
        .map_err(|error| match error {
            twospeed_chart::Error::PngSize { .. } => Problem::new("picture_size", error),
            error => Problem::new("not_drawn", error),
        })
}

impl App {
    /// What is shown, as the bytes of a file.
    async fn exported(&self, request: &ExportRequest) -> Result<Vec<u8>, Problem> {
        let chosen = self.chosen(request.figure, &request.results).await?;
        let sources = numbers(&chosen, request.figure);
        if sources.is_empty() {
            return Err(nothing_to_draw(&twospeed_chart::Error::Empty));
        }
        let kind = kind(request.figure);
        match request.form {
            Form::Svg => Ok(figure(&chosen, request)?
                .svg_for(theme(request.dark))
                .into_bytes()),
            Form::Png => picture(&figure(&chosen, request)?, request),
            Form::Pdf => figure(&chosen, request)?
                .to_pdf(theme(request.dark))
                .map_err(|error| Problem::new("not_drawn", error)),
            Form::Csv => table(TableForm::Csv, kind, &sources),
            Form::Markdown => table(TableForm::Markdown, kind, &sources),
            Form::Json => {
                let mut text = Vec::new();
                self.history()
                    .await?
                    .export(&chosen.run_ids(), Timestamp::now(), &mut text)
                    .await
                    .map_err(history_problem)?;
                Ok(text)
            }
        }
    }

    /// Saves what is shown.
    ///
    /// Errors: `file_exists` where something is there that is not to be replaced,
    /// `folder_missing`, `not_written`, `picture_size`, `path_unusable`, `nothing_to_draw`.
    pub async fn export(&self, request: ExportRequest) -> Result<Exported, Problem> {
        let path = with_ending(&self.path_of(&request.path)?, request.form);
        let bytes = self.exported(&request).await?;
        let length = bytes.len() as u64;
        let place = path.clone();
        let replace = request.replace;
        self.runtime
            .spawn_blocking(move || save(&place, &bytes, replace))
            .await
            .map_err(|_| Problem::new("not_written", "The file was not written. Try again."))?
            .map_err(|error| Problem::new(error.code(), error))?;
        Ok(Exported {
            path: self.may_reveal(&path),
            bytes: length,
        })
    }

    /// Puts what is shown on the clipboard.
    pub async fn copy(&self, request: ExportRequest, what: CopyWhat) -> Result<(), Problem> {
        let form = match what {
            CopyWhat::Picture => Form::Png,
            CopyWhat::Table => Form::Markdown,
        };
        let bytes = self.exported(&ExportRequest { form, ..request }).await?;
        match what {
            CopyWhat::Picture => self.desk.copy_picture(&bytes).await,
            CopyWhat::Table => self.desk.copy_text(&String::from_utf8_lossy(&bytes)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_is_added_replaced_or_left() {
        for (path, form, file) in [
            ("/a/SmolLM2", Form::Svg, "/a/SmolLM2.svg"),
            ("/a/Qwen2.5", Form::Png, "/a/Qwen2.5.png"),
            ("/a/figure.PNG", Form::Png, "/a/figure.PNG"),
            ("/a/figure.svg", Form::Png, "/a/figure.png"),
            ("/a/figure.svg.gz", Form::Json, "/a/figure.svg.gz.json"),
            ("/a/.svg", Form::Svg, "/a/.svg.svg"),
            ("/a/notes.md", Form::Markdown, "/a/notes.md"),
        ] {
            assert_eq!(
                with_ending(Path::new(path), form),
                Path::new(file),
                "{path}"
            );
        }
    }

    #[test]
    fn a_file_name_holds_nothing_that_a_system_minds() {
        for (subject, name) in [
            ("SmolLM2 135M Instruct", "SmolLM2 135M Instruct speeds"),
            ("Qwen2.5 0.5B", "Qwen2.5 0.5B speeds"),
            ("../../etc/passwd", "etc passwd speeds"),
            (
                "<img src=x onerror=alert(1)>",
                "img src x onerror alert(1) speeds",
            ),
            ("con", "con speeds"),
            ("a\u{202e}b\nc", "a b c speeds"),
            ("模型", "模型 speeds"),
            ("...", "Twospeed speeds"),
            ("", "Twospeed speeds"),
        ] {
            assert_eq!(file_name(subject, FigureName::Speeds), name, "{subject:?}");
        }
        assert_eq!(
            file_name(&"x".repeat(300), FigureName::Users).len(),
            LONGEST_NAME + 6
        );
    }
}
