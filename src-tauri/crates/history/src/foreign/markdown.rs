//! The Markdown table, also in the middle of other text.

use super::Found;
use super::fields::Fields;
use crate::import::Form;

/// Values with the names of their fields.
type Named = Vec<(String, String)>;

/// `None` where no table has the columns `test` and `t/s`.
pub(super) fn read(text: &str) -> Option<(Form, Found)> {
    let mut found = Found::default();
    let mut table: Option<Vec<String>> = None;
    let mut tables = 0;
    let mut rows: Vec<(usize, usize, Named)> = Vec::new();
    // Rows since the last line that names a build.
    let mut unsigned = 0;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
        if let Some(build) = build_of(line) {
            for (_, _, cells) in &mut rows[unsigned..] {
                cells.extend(build.clone());
            }
            unsigned = rows.len();
        }
        let Some(cells) = cells_of(line) else {
            table = None;
            continue;
        };
        if is_header(&cells) {
            table = Some(cells);
            tables += 1;
            continue;
        }
        let Some(headings) = &table else { continue };
        if cells
            .iter()
            .all(|cell| cell.chars().all(|c| c == '-' || c == ':'))
        {
            continue;
        }
        if cells.len() != headings.len() {
            let reason = format!(
                "it has {} cells, and the table {} columns",
                cells.len(),
                headings.len()
            );
            found.reject(number + 1, reason);
            continue;
        }
        match row(headings, cells) {
            Ok(cells) => rows.push((number + 1, tables - 1, cells)),
            Err(reason) => found.reject(number + 1, reason),
        }
    }
    found.rows = rows
        .iter()
        .map(|(line, table, cells)| {
            let cells = cells
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()));
            Fields::of_text(*line, *table, cells)
        })
        .collect();
    (tables > 0).then_some((Form::Markdown, found))
}

/// The cells of a table's line.
fn cells_of(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for letter in inner.chars() {
        match letter {
            '|' if !escaped => cells.push(String::new()),
            '|' => {
                if let Some(cell) = cells.last_mut() {
                    cell.pop();
                    cell.push('|');
                }
            }
            _ => cells.last_mut()?.push(letter),
        }
        escaped = letter == '\\';
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

fn is_header(cells: &[String]) -> bool {
    let has = |name: &str| cells.iter().any(|cell| cell == name);
    has("test") && has("t/s")
}

/// `build: <commit> (<number>)`.
fn build_of(line: &str) -> Option<[(String, String); 2]> {
    let (commit, number) = line.strip_prefix("build:")?.trim().split_once(" (")?;
    Some([
        ("build_commit".to_owned(), commit.to_owned()),
        (
            "build_number".to_owned(),
            number.trim_end_matches(')').to_owned(),
        ),
    ])
}

/// The row's fields by llama-bench's names.
fn row(headings: &[String], cells: Vec<String>) -> Result<Named, String> {
    let mut fields = Vec::new();
    for (heading, cell) in headings.iter().zip(cells) {
        match heading.as_str() {
            "test" => fields.extend(test(&cell)?),
            "t/s" => fields.extend(speed(&cell)?),
            other => fields.push((field(other).to_owned(), cell)),
        }
    }
    Ok(fields)
}

/// llama-bench's name of the field under a heading of its table.
fn field(heading: &str) -> &str {
    match heading {
        "model" => "model_type",
        "backend" => "backends",
        "ngl" => "n_gpu_layers",
        "ncmoe" => "n_cpu_moe",
        "sm" => "split_mode",
        "mg" => "main_gpu",
        "threads" => "n_threads",
        "nkvo" => "no_kv_offload",
        "fa" => "flash_attn",
        "mmap" => "use_mmap",
        "dio" => "use_direct_io",
        "lm" => "load_mode",
        "embd" => "embeddings",
        "nopo" => "no_op_offload",
        "noh" => "no_host",
        "rpk" => "repack",
        "dev" => "devices",
        "ts" => "tensor_split",
        "ot" => "tensor_buft_overrides",
        "fitt" => "fit_target",
        "fitc" => "fit_min_ctx",
        other => other,
    }
}

/// What a test's name says: `pp512`, `pp 512`, `tg128 @ d4096`, `pp512+tg128`.
pub(super) fn test(name: &str) -> Result<Named, String> {
    let unknown = || format!("{name:?} is no name of a test, as pp512 or tg128 @ d4096 are");
    let name: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    let (what, depth) = match name.split_once('@') {
        Some((what, depth)) => (what, depth.strip_prefix('d').ok_or_else(unknown)?),
        None => (name.as_str(), "0"),
    };
    let (mut prompt, mut generate) = ("0", "0");
    for part in what.split('+') {
        if let Some(tokens) = part.strip_prefix("pp") {
            prompt = tokens;
        } else if let Some(tokens) = part.strip_prefix("tg") {
            generate = tokens;
        } else {
            return Err(unknown());
        }
    }
    [
        ("n_prompt", prompt),
        ("n_gen", generate),
        ("n_depth", depth),
    ]
    .into_iter()
    .map(|(field, tokens)| match tokens.parse::<u32>() {
        Ok(tokens) => Ok((field.to_owned(), tokens.to_string())),
        Err(_) => Err(unknown()),
    })
    .collect()
}

/// `228.70 ± 12.09`. The sign between them has many forms once a file changed its encoding.
fn speed(cell: &str) -> Result<Named, String> {
    let words: Vec<_> = cell.split_whitespace().collect();
    let (mean, deviation) = match words[..] {
        [mean] => (mean, None),
        [mean, _, "n/a"] => (mean, None),
        [mean, _, deviation] => (mean, Some(deviation)),
        _ => return Err(format!("{cell:?} is no speed, as 228.70 ± 12.09 is")),
    };
    let mut fields = vec![("avg_ts".to_owned(), mean.to_owned())];
    fields.extend(deviation.map(|text| ("stddev_ts".to_owned(), text.to_owned())));
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_years_are_read() {
        let tokens = |name: &str| {
            let fields = test(name).unwrap();
            fields
                .iter()
                .map(|(_, value)| value.clone())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(tokens("pp 512"), "512 0 0");
        assert_eq!(tokens("pp512"), "512 0 0");
        assert_eq!(tokens("tg 128"), "0 128 0");
        assert_eq!(tokens("tg128 @ d4096"), "0 128 4096");
        assert_eq!(tokens("pp512+tg128"), "512 128 0");
        assert_eq!(tokens("pp512+tg128 @ d128"), "512 128 128");
        for nonsense in ["", "pp", "ppx", "512", "tg128 @ 4096", "pp512+x"] {
            assert!(test(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_pipe_in_a_name_is_no_border() {
        assert_eq!(cells_of(r"| a\|b | c |").unwrap(), ["a|b", "c"]);
    }

    #[test]
    fn a_build_signs_the_rows_above_it() {
        let text = "| test | t/s |\n| - | - |\n| pp1 | 1 |\n\nbuild: abc (12)\n\n| test | t/s |\n| pp1 | 1 |\n";
        let (_, found) = read(text).unwrap();
        let said: Vec<_> = found.rows.iter().map(Fields::said).collect();
        assert!(
            said[0].contains("build_commit=abc\nbuild_number=12\n"),
            "{}",
            said[0]
        );
        assert!(!said[1].contains("build"), "{}", said[1]);
    }
}
