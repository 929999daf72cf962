//! The command line's words for warnings: what it means and what to do.

use twospeed_measure::warning::Warning;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// One sentence for a warning, with its numbers and advice.
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::SlowFirstSample { by } => format!(
            "The first repetition took {by:.1} times as long as the others: the machine was not warmed up. Repeat the test."
        ),
        Warning::HighVariance { relative } => format!(
            "The repetitions differ by {} (standard deviation): other programs or a changing clock disturb them. Close other programs and use more repetitions (-r).",
            percent(*relative)
        ),
        Warning::Trend { relative } => format!(
            "The speed {} by {} from the first repetition to the last: the machine {}. Measure longer to see where it settles.",
            if *relative < 0.0 { "falls" } else { "rises" },
            percent(relative.abs()),
            if *relative < 0.0 {
                "gets warm or busy"
            } else {
                "was still getting going"
            },
        ),
        Warning::SwapInUse { bytes } => format!(
            "{:.1} GiB of swap is in use: parts of the work may wait for the disk. Free memory and measure again.",
            *bytes as f64 / f64::from(1 << 30)
        ),
        Warning::OtherLoad { cores } => format!(
            "Other programs used {cores:.1} cores beside the measurement. Close them and measure again."
        ),
        Warning::Steal { share } => format!(
            "The host took {} of the processor's time from this virtual machine.",
            percent(*share)
        ),
        Warning::CpuQuota { cores, threads } => format!(
            "{threads} threads share a quota of {cores:.1} cores: give no more threads than that (-t)."
        ),
        Warning::Drift { relative } => format!(
            "The same fixed work took {} {} after the test than before: the machine changed meanwhile, so compare with care.",
            percent(relative.abs()),
            if *relative > 0.0 {
                "longer"
            } else {
                "less time"
            },
        ),
        Warning::OnBattery => {
            "The machine runs on battery and may hold its clock down. Plug it in.".into()
        }
        Warning::VariantSetAside { died, ran } => format!(
            "The CPU variant {died} dies on this machine of an instruction it does not have; {ran} ran instead."
        ),
        Warning::SoftwareGpu { device } => {
            format!("{device} is a GPU interface computed by the processor: this is no GPU speed.")
        }
        Warning::NothingOffloaded { asked } => format!(
            "{asked} layers were to run on a GPU and none did: no GPU backend is there. This is the processor's speed."
        ),
        Warning::PageFaults { faults } => format!(
            "Parts of the model were read from disk inside the timed sections ({faults} page faults): memory is too small or the file was not in it yet."
        ),
        Warning::NotSettled { relative, target } => format!(
            "After all the repetitions that were allowed the mean is known to {:.1} %, not to the {:.1} % asked for: other programs or a changing clock disturb them. Close other programs, allow more repetitions or ask for less.",
            relative * 100.0,
            target * 100.0
        ),
        Warning::Outliers { count, by } => format!(
            "{} far from all others (the farthest at {} of the median), so the mean is not known as well as was asked; go by the median.",
            match count {
                1 => "One repetition lies".to_owned(),
                count => format!("{count} repetitions lie"),
            },
            percent(*by)
        ),
        Warning::Throttled { times } => format!(
            "The processor held its clock down because of heat ({}): this is what it holds when warm, not its best. Let it cool down, or improve its cooling.",
            if *times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            }
        ),
        Warning::PowerSaver { profile } => format!(
            "The power profile is {profile}, which saves energy at the cost of speed. Choose one for performance and measure again."
        ),
    }
}
