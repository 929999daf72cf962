//! What the rules' tests share, and the order of statements.

use twospeed_gguf::TensorType;

use super::*;
use crate::estimate::estimate as estimate_of;
use crate::expected::{Term, What};
use crate::question::Question;
use crate::testing::model;
use crate::units::{Bytes, Flops, TokensPerSecond};

/// An estimate of which nothing is known.
pub(super) fn estimate() -> Estimate {
    let mut found = estimate_of(&model("llama", &[], &[]), &Question::default());
    found.decode.breakdown.clear();
    found.prefill.breakdown.clear();
    found
}

/// An estimate of a calibrated machine with these terms of a token.
pub(super) fn decode(terms: Vec<Term>) -> Estimate {
    let mut found = estimate();
    let ns: f64 = terms.iter().map(|term| term.ns).sum();
    let speed = 1e9 / ns;
    found.decode.expected_tok_s = Some(TokensPerSecond(speed));
    found.decode.expected_low = Some(TokensPerSecond(speed * 0.9));
    found.decode.expected_high = Some(TokensPerSecond(speed + speed / 8.0));
    found.decode.breakdown = terms;
    found.basis.calibration = Some("calibration".into());
    found
}

pub(super) fn term(what: What, ns: f64, bytes: Option<u64>) -> Term {
    Term {
        what,
        ns,
        bytes: bytes.map(Bytes),
        flops: None,
        basis: TermBasis::Measured,
    }
}

pub(super) fn calibration(threads: u32, variant: &str, build: u32) -> Calibration {
    Calibration {
        id: "calibration".into(),
        at: "2026-12-01T10:00:00Z".into(),
        backend: "CPU".into(),
        variant: variant.into(),
        threads,
        build,
        ubatch: 512,
        last_level_cache: None,
        reads: Vec::new(),
        kernels: Vec::new(),
        step_ns: None,
    }
}

fn names(statements: &[Statement]) -> Vec<String> {
    let name = |statement: &Statement| {
        let json = serde_json::to_value(&statement.says).unwrap();
        let phase = json.get("phase").and_then(|phase| phase.as_str());
        let name = json["says"].as_str().unwrap();
        phase.map_or(name.to_owned(), |phase| format!("{name} {phase}"))
    };
    statements.iter().map(name).collect()
}

/// A token of 10 ms: 7 of weights, `attention` ms of the cache, the layers the rest.
fn ten_ms(attention: f64) -> Estimate {
    let weights = What::Weights {
        tensor_type: TensorType::Q4K,
    };
    let mut found = decode(vec![
        term(weights, 7e6 - attention * 1e6, Some(100_000_000)),
        term(What::Attention, attention * 1e6, Some(10_000_000)),
        term(What::Layers, 3e6, None),
    ]);
    found.decode.ceiling_tok_s = Some(TokensPerSecond(200.0));
    let mut matrices = term(weights, 1e9, None);
    matrices.flops = Some(Flops(200_000_000_000));
    found.prefill.breakdown = vec![matrices];
    found.prefill.expected_tok_s = Some(TokensPerSecond(512.0));
    found.prefill.expected_low = Some(TokensPerSecond(480.0));
    found.prefill.expected_high = Some(TokensPerSecond(550.0));
    found
}

#[test]
fn a_surprise_comes_first_and_what_holds_for_all_comes_last() {
    let header = model(
        "llama",
        &[
            ("block_count", 2),
            ("embedding_length", 64),
            ("attention.head_count", 1),
            ("context_length", 8192),
        ],
        &[],
    );
    let near = ten_ms(0.5);
    let mut facts = Facts {
        header: Some(&header),
        estimate: Some(&near),
        ..Facts::default()
    };
    facts.context.context = 1024;
    facts.model.weight_bytes_per_token = Some(Bytes(400_000));
    facts.last_level_cache = Some(Bytes(1_000_000));
    facts.result.decode = Some(99.0);
    facts.result.prefill = Some(300.0);
    assert_eq!(
        names(&statements(&facts)),
        [
            "judged prefill",
            "token_time",
            "gap",
            "judged decode",
            "cache_resident",
            "kv_growth"
        ]
    );
    let deep = ten_ms(3.0);
    facts.estimate = Some(&deep);
    facts.result.prefill = Some(500.0);
    assert_eq!(
        names(&statements(&facts)),
        [
            "token_time",
            "kv_growth",
            "gap",
            "judged decode",
            "judged prefill",
            "cache_resident"
        ],
        "where the cache takes 30 % of a token, it is worth more"
    );
}

#[test]
fn without_any_fact_nothing_is_said() {
    assert!(statements(&Facts::default()).is_empty());
}

#[test]
fn what_a_statement_rests_on_is_named() {
    let mut found = ten_ms(0.5);
    assert_eq!(rests(&found), Rests::Calibrated);
    found.basis.corrected_by_runs = 3;
    assert_eq!(rests(&found), Rests::Corrected { runs: 3 });
    found.basis.corrected_by_runs = 0;
    found.basis.calibration = None;
    assert_eq!(rests(&found), Rests::Published);
}

#[test]
fn statements_cross_to_a_page_and_back() {
    let found = ten_ms(0.5);
    let mut facts = Facts {
        estimate: Some(&found),
        ..Facts::default()
    };
    facts.result.decode = Some(50.0);
    for statement in statements(&facts) {
        let text = serde_json::to_string(&statement.says).unwrap();
        assert_eq!(serde_json::from_str::<Says>(&text).unwrap(), statement.says);
    }
}
