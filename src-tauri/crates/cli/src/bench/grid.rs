//! Every combination of what was asked for, in llama-bench's order: the one that reloads least.

use twospeed_engine::{FlashAttention, Settings, TestSpec};

use super::args::BenchArgs;
use super::lists::{Flag, List, Numbers};
use crate::Failure;

/// Tests of one model, in order.
///
/// Errors: one sentence that names the flag whose value is out of range.
pub fn tests(args: &BenchArgs, default_threads: u32) -> Result<Vec<(Settings, TestSpec)>, Failure> {
    let mut grid = vec![Settings {
        n_threads: default_threads,
        numa: args.numa.clone(),
        prio: args.prio,
        ..Settings::default()
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
    vary(&mut grid, &numbers(&args.main_gpu, "-mg")?, |s, v| {
        s.main_gpu = v
    });
    vary(&mut grid, &args.device, |s, v| s.devices = v);
    vary(&mut grid, &shares(&args.tensor_split)?, |s, v| {
        s.tensor_split = v
    });
    vary(&mut grid, &args.override_tensor, |s, v| {
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

    let depths = or(numbers(&args.n_depth, "-d")?, 0);
    let polls = or(numbers(&args.poll, "--poll")?, Settings::default().poll);
    let specs = specs(args)?;
    let mut tests = Vec::new();
    for settings in grid {
        for n_depth in &depths {
            for poll in &polls {
                for spec in &specs {
                    let settings = Settings {
                        poll: *poll,
                        ..settings.clone()
                    };
                    tests.push((
                        settings,
                        TestSpec {
                            n_depth: *n_depth,
                            ..*spec
                        },
                    ));
                }
            }
        }
    }
    Ok(tests)
}

/// Prefill tests, then decode tests, then both in one; a test of nothing is left out.
fn specs(args: &BenchArgs) -> Result<Vec<TestSpec>, Failure> {
    let of = |n_prompt, n_gen| TestSpec {
        n_prompt,
        n_gen,
        n_depth: 0,
    };
    let prompts = or(numbers(&args.n_prompt, "-p")?, 512);
    let generations = or(numbers(&args.n_gen, "-n")?, 128);
    let specs: Vec<_> = prompts
        .into_iter()
        .map(|n| of(n, 0))
        .chain(generations.into_iter().map(|n| of(0, n)))
        .chain(args.prompt_gen.iter().map(|pg| of(pg.n_prompt, pg.n_gen)))
        .filter(|spec| spec.tokens() > 0)
        .collect();
    if specs.is_empty() {
        return Err(Failure::Usage(
            "There is nothing to measure: -p and -n are both 0.".into(),
        ));
    }
    Ok(specs)
}

fn or<T>(mut values: Vec<T>, default: T) -> Vec<T> {
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

fn numbers<T: TryFrom<i64>>(given: &[Numbers], flag: &str) -> Result<Vec<T>, Failure> {
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

fn positive(given: &[Numbers], flag: &str) -> Result<Vec<u32>, Failure> {
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

/// `3/1` in llama-bench's spelling: two decimals each, trailing zeros dropped but for the first.
fn shares(given: &[String]) -> Result<Vec<String>, Failure> {
    given
        .iter()
        .map(|text| {
            let mut shares = text
                .split('/')
                .map(|share| {
                    share
                        .trim()
                        .parse::<f32>()
                        .ok()
                        .filter(|share| share.is_finite() && *share >= 0.0)
                        .ok_or_else(|| {
                            Failure::Usage(format!(
                                "-ts {text} is no list of shares: write for example 3/1."
                            ))
                        })
                })
                .collect::<Result<Vec<_>, _>>()?;
            while shares.len() > 1 && shares.last() == Some(&0.0) {
                shares.pop();
            }
            let written: Vec<_> = shares.iter().map(|share| format!("{share:.2}")).collect();
            Ok(written.join("/"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn grid(line: &str) -> Vec<(Settings, TestSpec)> {
        let arguments = format!("bench -m x.gguf {line}");
        let words = arguments.split(' ').filter(|word| !word.is_empty());
        let words: Vec<_> = words.map(Into::into).collect();
        let words = crate::flags::with_long_names(&words).unwrap();
        tests(&Line::parse_from(words).bench, 2).unwrap()
    }

    fn names(line: &str) -> Vec<String> {
        let tests = grid(line);
        tests.iter().map(|(_, spec)| spec.to_string()).collect()
    }

    #[test]
    fn without_flags_the_tests_are_llama_benchs() {
        assert_eq!(names(""), ["pp512", "tg128"]);
        let (settings, _) = &grid("")[0];
        let expected = Settings {
            n_threads: 2,
            ..Settings::default()
        };
        assert_eq!(*settings, expected);
    }

    #[test]
    fn prompts_come_first_then_answers_then_both() {
        assert_eq!(
            names("-n 8,16 -pg 32,8 -p 64 -p 128 -pg 16,4"),
            ["pp64", "pp128", "tg8", "tg16", "pp32+tg8", "pp16+tg4"]
        );
        assert_eq!(names("-p 0 -n 8"), ["tg8"]);
    }

    #[test]
    fn depth_turns_faster_than_threads_and_slower_than_tests() {
        assert_eq!(
            names("-p 8 -n 4 -d 0,16"),
            ["pp8", "tg4", "pp8 @ d16", "tg4 @ d16"]
        );
        let threads: Vec<_> = grid("-p 8 -n 0 -d 0,16 -t 1,2")
            .iter()
            .map(|(settings, spec)| (settings.n_threads, spec.n_depth))
            .collect();
        assert_eq!(threads, [(1, 0), (1, 16), (2, 0), (2, 16)]);
    }

    #[test]
    fn what_reloads_the_model_turns_slowest() {
        let turns: Vec<_> = grid("-p 8 -n 0 -ngl 0,99 -ub 128,1024 -fa 0,1")
            .iter()
            .map(|(s, _)| (s.n_gpu_layers, s.n_ubatch, s.flash_attn.number()))
            .collect();
        assert_eq!(
            turns[..4],
            [(0, 128, 0), (0, 128, 1), (0, 1024, 0), (0, 1024, 1)]
        );
        assert_eq!(turns[4].0, 99);
    }

    #[test]
    fn logits_of_a_whole_micro_batch_have_room() {
        let outputs: Vec<_> = grid("-p 8 -n 0 -ub 128,1024")
            .iter()
            .map(|(settings, _)| settings.n_outputs)
            .collect();
        assert_eq!(outputs, [128, 1024]);
    }

    #[test]
    fn shares_are_written_as_llama_bench_writes_them() {
        assert_eq!(grid("-ts 3/1/0")[0].0.tensor_split, "3.00/1.00");
        assert_eq!(grid("-ts 0")[0].0.tensor_split, "0.00");
    }
}
