//! Devices left out, each in turn: what the others teach of them against what was measured.

use super::learn::{Example, quantile};
use super::*;
use crate::testing::{Tensor, model};
use crate::units::BytesPerSecond;

/// A measurement of a device that nothing was learned from.
struct LeftOut {
    device: &'static str,
    weak: bool,
    /// Measured / expected speed.
    ratio: f64,
    /// The band that was stated.
    band: f64,
}

impl LeftOut {
    fn met(&self) -> bool {
        (1.0 / self.band..=self.band).contains(&self.ratio)
    }

    /// How far the expectation was off, as a share of what was measured.
    fn error(&self) -> f64 {
        (1.0 / self.ratio - 1.0).abs()
    }
}

fn without<'a, W>(examples: &'a [Example<W>], device: &str) -> Vec<&'a Example<W>> {
    let others = examples.iter();
    others.filter(|e| e.device.name != device).collect()
}

/// Everything about a device is forgotten, its constants and its bands are learned from the others
/// alone, and it is asked about.
fn cross_validated() -> (Vec<LeftOut>, Vec<LeftOut>) {
    let (decode, prefill) = examples();
    let devices: BTreeMap<&str, &'static Device> = decode
        .iter()
        .map(|example| example.device)
        .chain(prefill.iter().map(|example| example.device))
        .map(|device| (device.name.as_str(), device))
        .collect();
    let (mut of_decode, mut of_prefill) = (Vec::new(), Vec::new());
    for (name, device) in devices {
        let learned = learn(
            &without(&decode, name),
            &without(&prefill, name),
            &device.kind,
        );
        for example in decode.iter().filter(|e| e.device.name == name) {
            let model = learned.decode.as_ref().unwrap();
            of_decode.push(LeftOut {
                device: name,
                weak: example.weak,
                ratio: model.rates.seconds(device, &example.work) / example.seconds,
                band: model.band,
            });
        }
        for example in prefill.iter().filter(|e| e.device.name == name) {
            let model = learned.prefill(device).unwrap();
            of_prefill.push(LeftOut {
                device: name,
                weak: example.weak,
                ratio: model.seconds(device, &example.work) / example.seconds,
                band: model.band,
            });
        }
    }
    (of_decode, of_prefill)
}

/// Prints how well devices were met, and gives the shares: met of all, and mean errors of all and
/// without the weak ones.
fn report(phase: &str, cases: &[LeftOut]) -> (f64, f64, f64) {
    let mean = |cases: &[&LeftOut]| -> f64 {
        cases.iter().map(|case| case.error()).sum::<f64>() / cases.len() as f64
    };
    let all: Vec<_> = cases.iter().collect();
    let strong: Vec<_> = cases.iter().filter(|case| !case.weak).collect();
    let met = |cases: &[&LeftOut]| {
        cases.iter().filter(|case| case.met()).count() as f64 / cases.len() as f64
    };
    let median = quantile(all.iter().map(|case| (case.error(), 1.0)).collect(), 0.5);
    println!(
        "{phase}: {} measurements of {} devices left out: mean error {:.1} %, median {:.1} %; \
         without {} weak ones mean {:.1} %; within the band {:.1} %, without weak ones {:.1} %",
        all.len(),
        all.iter()
            .map(|case| case.device)
            .collect::<BTreeSet<_>>()
            .len(),
        100.0 * mean(&all),
        100.0 * median,
        all.len() - strong.len(),
        100.0 * mean(&strong),
        100.0 * met(&all),
        100.0 * met(&strong),
    );
    let mut devices: BTreeMap<&str, Vec<&LeftOut>> = BTreeMap::new();
    for case in cases {
        devices.entry(case.device).or_default().push(case);
    }
    for (device, cases) in devices {
        let (least, most) = cases
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), case| {
                (least.min(case.ratio), most.max(case.ratio))
            });
        println!(
            "  {device:<34} {:>3} measured at {least:.2} to {most:.2} of what was expected, \
             band a factor of {:.2}",
            cases.len(),
            cases[0].band
        );
    }
    (met(&all), mean(&all), mean(&strong))
}

#[test]
fn devices_that_were_left_out_are_met_within_the_stated_band() {
    let (decode, prefill) = cross_validated();
    let (met, all, strong) = report("decode", &decode);
    assert!(met >= 0.85, "decode: {met}");
    assert!(all < 0.45 && strong < 0.25, "decode: {all}, {strong}");
    let (met, all, strong) = report("prefill", &prefill);
    assert!(met >= 0.85, "prefill: {met}");
    assert!(all < 0.85 && strong < 0.65, "prefill: {all}, {strong}");
}

#[test]
fn a_wider_band_goes_with_less_that_is_known() {
    let factor = |kind: &str, device: &str| {
        let learned = learned(kind).unwrap();
        learned.prefill(device::find(device).unwrap()).unwrap().band
    };
    // The RTX 4090's peak is published, the RTX 6000 Ada's is not.
    let by_peak = factor("nvidia_gpu", "RTX 4090");
    let by_bandwidth = factor("nvidia_gpu", "RTX 6000 Ada");
    println!("prefill by peak within {by_peak:.2}, by bandwidth within {by_bandwidth:.2}");
    assert!(by_peak < by_bandwidth);
    let decode = |kind: &str| learned(kind).unwrap().decode.as_ref().unwrap().band;
    println!("decode of its kind within {:.2}", decode("nvidia_gpu"));
    println!("decode of a related kind within {:.2}", decode("amd_apu"));
    assert!(decode("nvidia_gpu") < decode("amd_apu"));
}

#[test]
fn every_preset_has_an_expectation_or_none_at_all() {
    for device in device::devices() {
        let learned = learned(&device.kind).unwrap();
        let (decode, prefill) = (learned.decode.as_ref(), learned.prefill(device));
        let rates = decode.unwrap().rates;
        println!(
            "{:<44} {:>3.0} % {:>4.0} us/layer  x/{:.2}   {:>6.1} TFLOP/s x/{:.2}",
            device.name,
            100.0 * rates.efficiency,
            1e6 * rates.layer_seconds,
            decode.unwrap().band,
            1e-12 / prefill.unwrap().seconds_per_flop(device),
            prefill.unwrap().band
        );
        assert!((0.4..=0.9).contains(&rates.efficiency), "{}", device.name);
        assert!(
            (0.0..1e-3).contains(&rates.layer_seconds),
            "{}",
            device.name
        );
    }
    assert_eq!(Family::of("abacus"), None);
}

#[test]
fn a_device_of_many_measurements_counts_as_one() {
    // Two devices reach 50 %, one of ten measurements reaches 90 %: the middle device decides.
    let device = |name: &str| device::find(name).unwrap();
    let example = |name: &str, share: f64| {
        let device = device(name);
        let work = DecodeWork {
            layers: 1e-6,
            weights: Bytes(1_000_000_000),
            cache: Bytes::ZERO,
            state: Bytes::ZERO,
        };
        Example {
            device,
            weak: false,
            work,
            seconds: 1e9 / (device.bandwidth.0 as f64 * share),
        }
    };
    let mut examples = vec![example("RTX 3070", 0.5), example("RTX 3090", 0.5)];
    examples.extend((0..10).map(|_| example("RTX 4090", 0.9)));
    let examples: Vec<_> = examples.iter().collect();
    let learned = learn(&examples, &[], "nvidia_gpu");
    let model = learned.decode.unwrap();
    assert_eq!(model.rates.efficiency, 0.5);
    assert_eq!((model.devices, model.measurements), (3, 12));
    assert!(learned.by_bandwidth.is_none(), "no prefill was measured");
}

#[test]
fn a_quantile_counts_weights_and_not_values() {
    let values = vec![(3.0, 1.0), (1.0, 1.0), (2.0, 6.0)];
    assert_eq!(quantile(values.clone(), 0.1), 1.0);
    assert_eq!(quantile(values.clone(), 0.5), 2.0);
    assert_eq!(quantile(values.clone(), 0.95), 3.0);
    assert_eq!(quantile(Vec::new(), 0.5), 0.0);
}

const Q8: twospeed_gguf::TensorType = twospeed_gguf::TensorType::Q8_0;

/// A model of two layers with 4 of 32 experts and an output.
fn experts() -> twospeed_gguf::Model {
    let mut tensors: Vec<Tensor<'_>> = Vec::new();
    for layer in 0..2 {
        for (name, dimensions) in [
            ("attn_q.weight", &[1024, 1024][..]),
            ("ffn_up_exps.weight", &[1024, 512, 32][..]),
        ] {
            tensors.push((format!("blk.{layer}.{name}"), Q8, dimensions));
        }
    }
    tensors.push(("output.weight".into(), Q8, &[1024, 4096]));
    tensors.push(("token_embd.weight".into(), Q8, &[1024, 4096]));
    let keys = [
        ("block_count", 2),
        ("embedding_length", 1024),
        ("context_length", 4096),
        ("attention.head_count", 8),
        ("expert_count", 32),
        ("expert_used_count", 4),
    ];
    model("llama", &keys, &tensors)
}

fn asked(question: &Question) -> (Option<Expected>, Option<Expected>, Vec<Footing>) {
    let model = experts();
    let (shape, weights) = (
        Shape::from_model(&model).unwrap(),
        Weights::of(&model).unwrap(),
    );
    let device = device::find("RTX 4090").unwrap();
    let (decode, prefill) = expected(device, &weights, &shape, question);
    (decode, prefill, footing(device, &shape, question))
}

#[test]
fn the_terms_are_what_the_time_is_made_of() {
    let (decode, prefill, footing) = asked(&Question::default());
    let (decode, prefill) = (decode.unwrap(), prefill.unwrap());
    let seconds = |terms: &[Term]| terms.iter().map(|term| term.ns).sum::<f64>() / 1e9;
    assert!((seconds(&decode.terms) * decode.speed.0 - 1.0).abs() < 1e-9);
    assert!((seconds(&prefill.terms) * prefill.speed.0 / 512.0 - 1.0).abs() < 1e-9);
    for (expected, phase) in [(&decode, "decode"), (&prefill, "prefill")] {
        assert!(
            expected.low < expected.speed && expected.speed < expected.high,
            "{phase}"
        );
        let published = |term: &Term| term.basis == TermBasis::Published;
        assert!(expected.terms.iter().all(published), "{phase}");
    }
    // 34 bytes hold 32 weights: 2 x 4 of 32 experts of 1,024 x 512, 2 x 1,024 x 1,024, the output.
    let bytes = |what| {
        let mut terms = decode.terms.iter();
        terms
            .find(|term| term.what == what)
            .unwrap()
            .bytes
            .unwrap()
            .0
    };
    let of = |elements: u64| elements / 32 * 34;
    let tensor_type = Q8;
    assert_eq!(bytes(What::Experts { tensor_type }), of(2 * 4 * 1024 * 512));
    assert_eq!(bytes(What::Weights { tensor_type }), of(2 * 1024 * 1024));
    assert_eq!(bytes(What::Output { tensor_type }), of(4096 * 1024));
    // Prefill does without the output, and 512 tokens use every expert.
    let experts = prefill.terms.iter();
    let mut experts = experts.filter(|term| term.what == What::Experts { tensor_type });
    let term = experts.next().unwrap();
    assert_eq!(term.bytes.unwrap().0, of(2 * 32 * 1024 * 512));
    assert_eq!(term.flops.unwrap(), Flops(2 * 2 * 4 * 1024 * 512 * 512));
    assert!(
        prefill
            .terms
            .iter()
            .all(|term| term.what != What::Output { tensor_type })
    );
    assert_eq!(footing.len(), 2);
}

#[test]
fn a_sentence_says_what_it_rests_on() {
    let (.., footing) = asked(&Question::default());
    let decode = footing[0].to_string();
    assert!(
        decode.starts_with("Decode on GeForce RTX 4090: ")
            && decode.contains(" published measurements on ")
            && decode
                .contains(" devices of its kind; devices left out were met within a factor of ")
            && decode.ends_with(" in 95 % of cases."),
        "{decode}"
    );
    let prefill = footing[1].to_string();
    assert!(
        prefill.contains("a share of its published peak"),
        "{prefill}"
    );
    let apu = device::find("Strix Halo").unwrap();
    let model = experts();
    let shape = Shape::from_model(&model).unwrap();
    let sentences = super::footing(apu, &shape, &Question::default());
    let sentence = sentences[1].to_string();
    assert!(
        sentence.contains("judged by its bandwidth alone as no peak is published")
            && sentence.contains("of related kinds, for nobody published any of its own"),
        "{sentence}"
    );
}

#[test]
fn what_nobody_published_is_not_expected() {
    let several = Question {
        context: crate::ContextSettings {
            sequences: 2,
            ..crate::ContextSettings::default()
        },
        ..Question::default()
    };
    let part = Question {
        gpu_layers: 1,
        ..Question::default()
    };
    for (question, why) in [
        (several, Footing::SeveralUsers),
        (part, Footing::PartOfTheLayers),
    ] {
        let (decode, prefill, footing) = asked(&question);
        assert_eq!((decode, prefill), (None, None));
        assert_eq!(footing, [why]);
    }
    let whole = Question {
        gpu_layers: 99,
        ..Question::default()
    };
    assert!(asked(&whole).0.is_some());
    // No prompt, no prefill.
    let no_prompt = Question {
        prompt: 0,
        ..Question::default()
    };
    assert!(asked(&no_prompt).1.is_none());
    let mut abacus = device::find("RTX 4090").unwrap().clone();
    abacus.kind = "abacus".into();
    let model = experts();
    let (shape, weights) = (
        Shape::from_model(&model).unwrap(),
        Weights::of(&model).unwrap(),
    );
    assert_eq!(
        expected(&abacus, &weights, &shape, &Question::default()),
        (None, None)
    );
}

#[test]
fn the_band_ends_at_the_ceiling() {
    let model = experts();
    let (shape, weights) = (
        Shape::from_model(&model).unwrap(),
        Weights::of(&model).unwrap(),
    );
    for preset in device::devices() {
        let mut device = preset.clone();
        // So slow that no constant matters beside the reading.
        device.bandwidth = BytesPerSecond(1_000_000);
        let (decode, _) = expected(&device, &weights, &shape, &Question::default());
        let decode = decode.unwrap();
        let work = DecodeWork::of(&weights, &shape, &Question::default()).unwrap();
        let ceiling = 1e6 / work.bytes();
        assert!(decode.high.0 <= ceiling * (1.0 + 1e-12), "{}", preset.name);
        assert!(decode.low < decode.speed, "{}", preset.name);
    }
}
