//! Every combination of settings that was asked for, in llama-bench's order: the one that reloads
//! least.

use twospeed_engine::{FlashAttention, Settings};

use super::args::SettingArgs;
use super::lists::{Flag, List, Numbers};
use crate::Failure;

/// Devices that llama.cpp can name (`llama_max_devices`): more shares than that end llama-bench.
const MAX_DEVICES: usize = 16;

/// What one combination of settings is measured with: the levels of polling turn faster than the
/// depths do, everything else slower.
#[derive(Debug, Clone, PartialEq)]
pub struct Combination {
    /// The settings, with the default level of polling.
    pub settings: Settings,
    /// Levels of polling, in order.
    pub polls: Vec<u32>,
}

impl Combination {
    /// The settings with each level of polling.
    pub fn polled(&self) -> impl Iterator<Item = Settings> + '_ {
        self.polls.iter().map(|poll| Settings {
            poll: *poll,
            ..self.settings.clone()
        })
    }
}

/// Combinations of settings, in order; what no flag names is as in `start`.
///
/// Errors: one sentence that names the flag whose value is out of range.
pub fn combinations(args: &SettingArgs, start: &Settings) -> Result<Vec<Combination>, Failure> {
    let mut grid = vec![Settings {
        numa: args.numa.clone(),
        prio: args.prio,
        ..start.clone()
    }];
    // Outermost first, as llama-bench nests its loops.
    vary(
        &mut grid,
        &numbers(&args.fit_target, "-fitt")?,
        |s, v: u64| s.fit_target = v,
    );
    vary(&mut grid, &numbers(&args.fit_ctx, "-fitc")?, |s, v| {
        s.fit_min_ctx = v
    });
    vary(&mut grid, &numbers(&args.n_gpu_layers, "-ngl")?, |s, v| {
        s.n_gpu_layers = v
    });
    vary(&mut grid, &numbers(&args.n_cpu_moe, "-ncmoe")?, |s, v| {
        s.n_cpu_moe = v
    });
    vary(&mut grid, &args.split_mode, |s, v| s.split_mode = v);
    vary(&mut grid, &args.load_mode, |s, v| s.load_mode = v);
    vary(&mut grid, &args.lazy_mode, |s, v| s.lazy_mode = v);
    let main_gpu = args.main_gpu.as_slice();
    vary(&mut grid, &numbers(main_gpu, "-mg")?, |s, v| s.main_gpu = v);
    let devices: Vec<_> = args.device.iter().map(|names| devices(names)).collect();
    vary(&mut grid, &devices, |s, v| s.devices = v);
    vary(&mut grid, &shares(&args.tensor_split)?, |s, v| {
        s.tensor_split = v
    });
    vary(&mut grid, &overrides(&args.override_tensor)?, |s, v| {
        s.tensor_buft_overrides = v
    });
    vary(&mut grid, &flags(&args.no_host), |s, v| s.no_host = v);
    vary(&mut grid, &flags(&args.repack), |s, v| s.repack = v);
    vary(&mut grid, &flags(&args.embeddings), |s, v| s.embeddings = v);
    vary(&mut grid, &flags(&args.no_op_offload), |s, v| {
        s.no_op_offload = v
    });
    vary(&mut grid, &positive(&args.batch_size, "-b")?, |s, v| {
        s.n_batch = v
    });
    vary(&mut grid, &positive(&args.ubatch_size, "-ub")?, |s, v| {
        s.n_ubatch = v
    });
    vary(&mut grid, &args.cache_type_k, |s, v| s.type_k = v);
    vary(&mut grid, &args.cache_type_v, |s, v| s.type_v = v);
    vary(&mut grid, &flags(&args.no_kv_offload), |s, v| {
        s.no_kv_offload = v
    });
    let flash: Vec<FlashAttention> = args.flash_attn.iter().map(|flag| flag.0).collect();
    vary(&mut grid, &flash, |s, v| s.flash_attn = v);
    vary(&mut grid, &positive(&args.threads, "-t")?, |s, v| {
        s.n_threads = v
    });
    vary(&mut grid, &args.cpu_mask, |s, v| s.cpu_mask = v);
    vary(&mut grid, &flags(&args.cpu_strict), |s, v| s.cpu_strict = v);

    for settings in &mut grid {
        // Room for the logits of a whole micro-batch, as llama-bench has it.
        settings.n_outputs = settings.n_ubatch;
    }

    let polls = or(numbers(&args.poll, "--poll")?, start.poll);
    Ok(grid
        .into_iter()
        .map(|settings| Combination {
            settings,
            polls: polls.clone(),
        })
        .collect())
}

/// The values, or the default where none was given.
pub fn or<T>(mut values: Vec<T>, default: T) -> Vec<T> {
    if values.is_empty() {
        values.push(default);
    }
    values
}

/// Replaces each combination by one for each value, in the order of the values.
fn vary<T: Clone>(grid: &mut Vec<Settings>, values: &[T], set: impl Fn(&mut Settings, T)) {
    if values.is_empty() {
        return;
    }
    *grid = grid
        .iter()
        .flat_map(|settings| values.iter().map(move |value| (settings, value)))
        .map(|(settings, value)| {
            let mut settings = settings.clone();
            set(&mut settings, value.clone());
            settings
        })
        .collect();
}

/// The numbers of a flag, each one that its setting can hold.
///
/// Errors: one sentence that names the flag.
pub fn numbers<T: TryFrom<i64>>(given: &[Numbers], flag: &str) -> Result<Vec<T>, Failure> {
    given
        .iter()
        .flat_map(|numbers| &numbers.0)
        .map(|number| {
            T::try_from(*number).map_err(|_| {
                Failure::Usage(match number {
                    ..0 => format!("{flag} {number} is negative: give a positive number."),
                    _ => format!("{flag} {number} is too large: give a smaller number."),
                })
            })
        })
        .collect()
}

/// Like [`numbers`], of a flag whose 0 would measure nothing.
pub fn positive(given: &[Numbers], flag: &str) -> Result<Vec<u32>, Failure> {
    let values: Vec<u32> = numbers(given, flag)?;
    if values.contains(&0) {
        return Err(Failure::Usage(format!(
            "{flag} 0 measures nothing: give 1 or more."
        )));
    }
    Ok(values)
}

fn flags(given: &[List<Flag>]) -> Vec<bool> {
    given
        .iter()
        .flat_map(|list| &list.0)
        .map(|flag| flag.0)
        .collect()
}

/// `A / B` in llama-bench's spelling: no blanks.
fn devices(names: &str) -> String {
    let names: Vec<_> = names.split('/').map(str::trim).collect();
    names.join("/")
}

/// `pattern=buffer;pattern=buffer` in llama-bench's spelling: nothing between two commas is a group
/// without a rule.
fn overrides(given: &[String]) -> Result<Vec<String>, Failure> {
    given
        .iter()
        .map(|group| {
            let rules: Vec<_> = group.split(';').filter(|rule| !rule.is_empty()).collect();
            for rule in &rules {
                if !rule.contains('=') {
                    return Err(Failure::Usage(format!(
                        "-ot {rule} names no buffer: write pattern=buffer, for example exps=CPU."
                    )));
                }
            }
            match rules.is_empty() {
                true => Ok(Settings::default().tensor_buft_overrides),
                false => Ok(rules.join(";")),
            }
        })
        .collect()
}

/// `3/1` in llama-bench's spelling: two decimals each, trailing zeros dropped but for the first.
fn shares(given: &[String]) -> Result<Vec<String>, Failure> {
    given.iter().map(|text| shares_of(text)).collect()
}

fn shares_of(text: &str) -> Result<String, Failure> {
    let number = |share: &str| {
        let share = share.trim().parse::<f32>().ok();
        share.filter(|share| share.is_finite() && *share >= 0.0)
    };
    let shares: Option<Vec<f32>> = text.split(['/', ';']).map(number).collect();
    let Some(mut shares) = shares else {
        return Err(Failure::Usage(format!(
            "-ts {text} is no list of shares: write for example 3/1."
        )));
    };
    if shares.len() > MAX_DEVICES {
        return Err(Failure::Usage(format!(
            "-ts {text} has {} shares: the engine knows {MAX_DEVICES} devices at most.",
            shares.len()
        )));
    }
    while shares.len() > 1 && shares.last() == Some(&0.0) {
        shares.pop();
    }
    let written: Vec<_> = shares.iter().map(|share| format!("{share:.2}")).collect();
    Ok(written.join("/"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingArgs,
    }

    fn all(line: &str) -> Result<Vec<Settings>, String> {
        let words = ["twospeed", "bench"].into_iter().chain(line.split(' '));
        let words: Vec<_> = words
            .filter(|word| !word.is_empty())
            .map(Into::into)
            .collect();
        let words = crate::flags::with_long_names(&words).unwrap();
        let line = Line::parse_from(&words[1..]);
        let start = Settings {
            n_threads: 2,
            ..Settings::default()
        };
        match combinations(&line.settings, &start) {
            Ok(all) => Ok(all.iter().flat_map(Combination::polled).collect()),
            Err(failure) => Err(failure.sentence().unwrap().to_owned()),
        }
    }

    fn grid(line: &str) -> Vec<Settings> {
        all(line).unwrap()
    }

    #[test]
    fn without_flags_the_settings_are_llama_benchs() {
        let expected = Settings {
            n_threads: 2,
            ..Settings::default()
        };
        assert_eq!(grid(""), [expected]);
    }

    #[test]
    fn what_reloads_the_model_turns_slowest() {
        let turns: Vec<_> = grid("-ngl 0,99 -ub 128,1024 -fa 0,1")
            .iter()
            .map(|s| (s.n_gpu_layers, s.n_ubatch, s.flash_attn.number()))
            .collect();
        assert_eq!(
            turns[..4],
            [(0, 128, 0), (0, 128, 1), (0, 1024, 0), (0, 1024, 1)]
        );
        assert_eq!(turns[4].0, 99);
    }

    #[test]
    fn logits_of_a_whole_micro_batch_have_room() {
        let outputs: Vec<_> = grid("-ub 128,1024").iter().map(|s| s.n_outputs).collect();
        assert_eq!(outputs, [128, 1024]);
    }

    #[test]
    fn shares_are_written_as_llama_bench_writes_them() {
        let shares = |line: &str| grid(line)[0].tensor_split.clone();
        assert_eq!(shares("-ts 3/1/0"), "3.00/1.00");
        assert_eq!(shares("-ts 3;1"), "3.00/1.00");
        assert_eq!(shares("-ts 0"), "0.00");
        let many = vec!["1"; 17].join("/");
        assert!(
            all(&format!("-ts {many}"))
                .unwrap_err()
                .contains("17 shares")
        );
    }

    #[test]
    fn a_group_without_a_rule_is_none() {
        let rules: Vec<_> = grid("-ot exps=CPU;blk=CPU;,,a=CPU")
            .into_iter()
            .map(|settings| settings.tensor_buft_overrides)
            .collect();
        assert_eq!(rules, ["exps=CPU;blk=CPU", "none", "a=CPU"]);
        assert!(all("-ot exps").unwrap_err().contains("names no buffer"));
    }

    #[test]
    fn of_the_main_gpu_the_last_counts() {
        let gpus: Vec<_> = grid("-mg 0 -mg 1,2").iter().map(|s| s.main_gpu).collect();
        assert_eq!(gpus, [1, 2]);
    }
}
