use twospeed_engine::protocol::{Buffer, BufferUse, Device, EngineBuild, PROTOCOL, Variant};

use super::*;

const PP512: TestSpec = TestSpec {
    n_prompt: 512,
    n_gen: 0,
    n_depth: 0,
};

/// Samples of pp512 that ran at these speeds.
fn at(speeds: &[f64]) -> Vec<Sample> {
    speeds
        .iter()
        .zip(0..)
        .map(|(speed, index)| Sample {
            index,
            ns: (512e9 / speed) as u64,
            involuntary_switches: None,
            major_faults: None,
            reading: None,
        })
        .collect()
}

/// Their rates.
fn rates_at(speeds: &[f64]) -> Vec<f64> {
    rates(&Kind::Speed, PP512, &at(speeds))
}

fn hello(ran: &str, variants: &[&str]) -> Hello {
    let variant = |name: &str, score| Variant {
        name: name.into(),
        score,
    };
    Hello {
        protocol: PROTOCOL,
        engine: EngineBuild {
            build_number: 11434,
            build_commit: "unknown".into(),
            crate_version: "0.1.161".into(),
        },
        variant: variant(ran, 1),
        variants: variants
            .iter()
            .zip((1..10).rev())
            .map(|(n, s)| variant(n, s))
            .collect(),
        devices: vec![Device {
            name: "Vulkan0".into(),
            description: "llvmpipe (LLVM 15)".into(),
            kind: DeviceKind::SoftwareGpu,
            memory_total: None,
            memory_free: None,
        }],
        cpu_info: "CPU".into(),
        gpu_info: String::new(),
        backends: "CPU".into(),
        system_info: String::new(),
    }
}

fn on(device: &str, bytes: u64) -> Placement {
    Placement {
        buffers: vec![Buffer {
            device: device.into(),
            holds: BufferUse::Model,
            bytes,
        }],
        ..Placement::default()
    }
}

fn state() -> MachineState {
    MachineState {
        usable_cores: Some(2.0),
        ..MachineState::default()
    }
}

fn settings() -> Settings {
    Settings {
        n_threads: 2,
        ..Settings::default()
    }
}

#[test]
fn a_quiet_test_on_an_unknown_machine_has_no_warnings() {
    let samples = at(&[500.0, 502.0, 498.0, 501.0, 500.0]);
    let settings = settings();
    let evidence = Evidence {
        spec: PP512,
        kind: &Kind::Speed,
        until: None,
        settings: &settings,
        samples: &samples,
        before: None,
        after: None,
        anchor_before_ns: None,
        anchor_after_ns: None,
        placement: None,
        worker: None,
        set_aside: &[],
    };
    assert_eq!(judge(&evidence), []);
}

#[test]
fn a_cold_first_repetition_is_named_with_its_factor() {
    let warning = slow_first_sample(&at(&[100.0, 300.0, 310.0, 305.0]));
    let Some(Warning::SlowFirstSample { by }) = warning else {
        panic!("{warning:?}");
    };
    assert!((by - 3.05).abs() < 0.01, "305 / 100 = 3.05, got {by}");
}

#[test]
fn a_first_repetition_like_others_is_not_slow() {
    assert_eq!(slow_first_sample(&at(&[500.0, 505.0, 510.0])), None);
    assert_eq!(
        slow_first_sample(&at(&[300.0, 500.0, 510.0, 290.0])),
        None,
        "another one was as slow"
    );
    assert_eq!(
        slow_first_sample(&at(&[100.0, 500.0])),
        None,
        "two samples cannot tell which one is odd"
    );
}

#[test]
fn a_spread_of_68_percent_is_flagged() {
    // 25232 +/- 17263 tok/s were once reported as a result (warm-up too short).
    let warning = high_variance(&rates_at(&[
        25_232.0 - 17_263.0,
        25_232.0,
        25_232.0 + 17_263.0,
    ]));
    let Some(Warning::HighVariance { relative }) = warning else {
        panic!("{warning:?}");
    };
    assert!((relative - 0.684).abs() < 0.001, "{relative}");
}

#[test]
fn a_spread_of_half_a_percent_is_not_flagged() {
    assert_eq!(
        high_variance(&rates_at(&[42_935.0, 42_695.0, 43_175.0])),
        None
    );
    assert_eq!(
        high_variance(&rates_at(&[500.0])),
        None,
        "no spread, no judgement"
    );
}

#[test]
fn a_machine_that_heats_up_shows_a_falling_trend() {
    let warning = trend(&rates_at(&[500.0, 490.0, 481.0, 470.0, 461.0]));
    let Some(Warning::Trend { relative }) = warning else {
        panic!("{warning:?}");
    };
    assert!(relative < -0.07 && relative > -0.09, "{relative}");
}

#[test]
fn noise_without_a_direction_is_no_trend() {
    assert_eq!(trend(&rates_at(&[500.0, 440.0, 505.0, 430.0, 490.0])), None);
    assert_eq!(
        trend(&rates_at(&[500.0, 450.0, 400.0])),
        None,
        "three are too few"
    );
}

#[test]
fn swap_counts_before_as_well_as_after() {
    let swap = |bytes| MachineState {
        swap_used_bytes: Some(bytes),
        ..state()
    };
    assert_eq!(
        swap_in_use(Some(&swap(1 << 30)), Some(&swap(0))),
        Some(Warning::SwapInUse { bytes: 1 << 30 })
    );
    assert_eq!(
        swap_in_use(Some(&swap(1 << 20)), Some(&swap(1 << 20))),
        None
    );
    assert_eq!(swap_in_use(Some(&state()), None), None);
}

#[test]
fn other_load_is_weighed_against_the_cores_there_are() {
    let load = |cores, usable| MachineState {
        other_load_cores: Some(cores),
        usable_cores: Some(usable),
        ..MachineState::default()
    };
    assert_eq!(
        other_load(Some(&load(0.3, 2.0))),
        Some(Warning::OtherLoad { cores: 0.3 })
    );
    assert_eq!(other_load(Some(&load(0.3, 16.0))), None);
    assert_eq!(other_load(Some(&state())), None);
}

#[test]
fn stolen_time_is_named() {
    let stolen = |share| MachineState {
        steal: Some(share),
        ..state()
    };
    assert_eq!(
        steal(Some(&stolen(0.04))),
        Some(Warning::Steal { share: 0.04 })
    );
    assert_eq!(steal(Some(&stolen(0.001))), None);
}

#[test]
fn more_threads_than_the_quota_pays_for_are_named() {
    let quota = |cores, throttled| MachineState {
        cpu_quota_cores: Some(cores),
        quota_throttled_ns: Some(throttled),
        ..state()
    };
    assert_eq!(
        cpu_quota(&settings(), Some(&quota(1.5, 0))),
        Some(Warning::CpuQuota {
            cores: 1.5,
            threads: 2
        })
    );
    assert_eq!(cpu_quota(&settings(), Some(&quota(2.0, 0))), None);
    assert!(
        cpu_quota(&settings(), Some(&quota(2.0, 50_000_000))).is_some(),
        "the quota was hit all the same"
    );
    assert_eq!(cpu_quota(&settings(), Some(&state())), None, "no quota");
}

#[test]
fn an_anchor_that_slows_down_shows_drift() {
    let warning = drift(Some(300_000_000), Some(330_000_000));
    let Some(Warning::Drift { relative }) = warning else {
        panic!("{warning:?}");
    };
    assert!((relative - 0.1).abs() < 1e-12);
    assert_eq!(drift(Some(300_000_000), Some(303_000_000)), None);
    assert_eq!(drift(None, Some(1)), None);
    assert_eq!(drift(Some(0), Some(1)), None);
}

#[test]
fn battery_is_named_and_unknown_is_not_battery() {
    let battery = |on| MachineState {
        on_battery: on,
        ..state()
    };
    assert_eq!(
        on_battery(Some(&battery(Some(false))), Some(&battery(Some(true)))),
        Some(Warning::OnBattery)
    );
    assert_eq!(on_battery(Some(&battery(None)), None), None);
}

#[test]
fn only_a_better_variant_that_died_is_worth_a_word() {
    let variants = ["sapphirerapids", "icelake", "haswell"];
    let ran_icelake = hello("icelake", &variants);
    assert_eq!(
        variant_set_aside(Some(&ran_icelake), &["sapphirerapids".into()]),
        Some(Warning::VariantSetAside {
            died: "sapphirerapids".into(),
            ran: "icelake".into()
        })
    );
    assert_eq!(
        variant_set_aside(Some(&ran_icelake), &["haswell".into()]),
        None
    );
    assert_eq!(variant_set_aside(Some(&ran_icelake), &[]), None);
}

#[test]
fn a_software_device_that_held_weights_is_not_called_a_gpu() {
    let hello = hello("icelake", &["icelake"]);
    assert_eq!(
        software_gpu(Some(&hello), Some(&on("Vulkan0", 1000))),
        Some(Warning::SoftwareGpu {
            device: "llvmpipe (LLVM 15)".into()
        })
    );
    assert_eq!(
        software_gpu(Some(&hello), Some(&on("CPU_Mapped", 1000))),
        None
    );
}

#[test]
fn ninety_nine_layers_asked_of_a_cpu_build_are_named() {
    let asked = |n_gpu_layers| Settings {
        n_gpu_layers,
        ..settings()
    };
    let cpu = on("CPU_Mapped", 1000);
    assert_eq!(
        nothing_offloaded(&asked(99), Some(&cpu)),
        Some(Warning::NothingOffloaded { asked: 99 })
    );
    assert_eq!(
        nothing_offloaded(&asked(-1), Some(&cpu)),
        None,
        "left to the engine"
    );
    assert_eq!(nothing_offloaded(&asked(99), None), None, "not known");
    let gpu = Placement {
        offloaded_layers: Some(33),
        ..on("Vulkan0", 1000)
    };
    assert_eq!(nothing_offloaded(&asked(99), Some(&gpu)), None);
}

#[test]
fn reading_from_disk_while_timed_is_named() {
    let mut samples = at(&[500.0, 500.0]);
    samples[0].major_faults = Some(3);
    assert_eq!(page_faults(&Kind::Speed, &samples), None);
    samples[1].major_faults = Some(400);
    let named = Some(Warning::PageFaults { faults: 403 });
    assert_eq!(page_faults(&Kind::Speed, &samples), named);
    let first_token = |page_cache| Kind::FirstToken { page_cache };
    assert_eq!(page_faults(&first_token(PageCache::Warm), &samples), named);
    assert_eq!(
        page_faults(&first_token(PageCache::Drop), &samples),
        None,
        "a cold file is read from disk as it was asked"
    );
}

const UNTIL: Until = Until {
    relative: 0.02,
    at_most: 5,
};

#[test]
fn a_mean_that_is_still_unknown_at_the_cap_is_named_with_what_was_asked() {
    // Mean 100, s = sqrt((400 + 400 + 25 + 25) / 4) = 14.58; 2.776 * 14.58 / sqrt(5) = 18.10.
    let rates = [80.0, 120.0, 95.0, 105.0, 100.0];
    let Some(Warning::NotSettled { relative, target }) = not_settled(&rates, UNTIL, 3) else {
        panic!("it is not settled");
    };
    assert!((relative - 0.1810).abs() < 1e-4, "{relative}");
    assert_eq!(target, 0.02);
    assert_eq!(
        not_settled(&rates[..4], UNTIL, 3),
        None,
        "the cap was not met: something else ended it"
    );
    assert_eq!(not_settled(&[100.0; 5], UNTIL, 3), None);
}

#[test]
fn outliers_that_were_passed_over_are_named() {
    let rates = [100.0, 100.2, 50.0, 99.8, 100.0];
    assert_eq!(
        outliers(&rates, UNTIL, 3),
        Some(Warning::Outliers { count: 1, by: 0.5 })
    );
    assert_eq!(not_settled(&rates, UNTIL, 3), None);
    assert_eq!(outliers(&[100.0; 5], UNTIL, 3), None);
}

#[test]
fn a_clock_held_down_by_heat_is_told() {
    let heat = |core_throttles, package_throttles| MachineState {
        core_throttles,
        package_throttles,
        ..state()
    };
    assert_eq!(
        throttled(Some(&heat(Some(3), Some(7)))),
        Some(Warning::Throttled { times: 7 })
    );
    assert_eq!(throttled(Some(&heat(Some(0), None))), None);
    assert_eq!(throttled(Some(&heat(None, None))), None, "not readable");
    assert_eq!(throttled(None), None);
}

#[test]
fn a_profile_that_saves_energy_is_told() {
    let with = |profile: &str| MachineState {
        power_profile: Some(profile.into()),
        ..state()
    };
    assert_eq!(
        power_saver(Some(&with("balanced")), Some(&with("low-power"))),
        Some(Warning::PowerSaver {
            profile: "low-power".into()
        })
    );
    for profile in [
        "performance",
        "balanced",
        "schedutil",
        "balance_performance",
    ] {
        assert_eq!(power_saver(Some(&with(profile)), None), None, "{profile}");
    }
    assert_eq!(power_saver(Some(&state()), None), None);
}
