//! Every combination of what was asked for, in llama-bench's order: the one that reloads least.

use twospeed_engine::{FlashAttention, Settings, TestSpec};

use super::args::BenchArgs;
use super::lists::{Flag, List, Numbers};

/// Tests of one model, in order.
///
/// Errors: one sentence that names the flag whose value is out of range.
pub fn tests(args: &BenchArgs, default_threads: u32) -> Result<Vec<(Settings, TestSpec)>, String> {
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
fn specs(args: &BenchArgs) -> Result<Vec<TestSpec>, String> {
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
        return Err("There is nothing to measure: -p and -n are both 0.".into());
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

fn numbers<T: TryFrom<i64>>(given: &[Numbers], flag: &str) -> Result<Vec<T>, String> {
    given
        .iter()
        .flat_map(|numbers| &numbers.0)
        .map(|number| T::try_from(*number).map_err(|_| format!("{flag} {number} is out of range.")))
        .collect()
}

fn positive(given: &[Numbers], flag: &str) -> Result<Vec<u32>, String> {
    let values: Vec<u32> = numbers(given, flag)?;
    if values.contains(&0) {
        return Err(format!("{flag} 0 measures nothing: give 1 or more."));
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
fn shares(given: &[String]) -> Result<Vec<String>, String> {
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
                            format!("-ts {text} is no list of shares: write for example 3/1.")
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
