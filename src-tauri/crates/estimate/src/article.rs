//! The formulas of the article "Prefill vs decode" (Turing Pi): what a person can do by hand.
//!
//! They teach; the rest of this crate starts from them and says where they stop being true.

use crate::units::{Bytes, BytesPerSecond, TokensPerSecond};

/// The most a bandwidth allows: one read of `weights` for each decoded token.
///
/// decode tok/s = bandwidth / bytes read per token. With a file's size it is the article's
/// estimate; `None` where nothing is read.
pub fn decode_ceiling(bandwidth: BytesPerSecond, weights: Bytes) -> Option<TokensPerSecond> {
    bandwidth.reads_of(weights)
}

/// Keys and values of one token in a plain full-attention transformer.
///
/// 2 x layers x KV heads x head dimension x bytes per element.
pub fn kv_bytes_per_token(layers: u64, kv_heads: u64, head_dim: u64, element_bytes: u64) -> Bytes {
    let factors = [2, layers, kv_heads, head_dim, element_bytes];
    Bytes(factors.into_iter().fold(1, u64::saturating_mul))
}

/// Share of the ceiling that was reached, 0 to 1.
pub fn share_of_ceiling(measured: TokensPerSecond, ceiling: TokensPerSecond) -> f64 {
    measured.0 / ceiling.0
}

/// Time to read a prompt at a prefill speed, in seconds: the largest part of a long prompt's TTFT.
pub fn prompt_seconds(tokens: u64, prefill: TokensPerSecond) -> f64 {
    tokens as f64 / prefill.0
}

#[cfg(test)]
mod tests {
    //! Every figure that the article derives, from the inputs it states.

    use super::*;

    const ORIN_NANO_SUPER: f64 = 102.0;

    fn ceiling(file_gb: f64) -> TokensPerSecond {
        let bandwidth = BytesPerSecond::from_gb_s(ORIN_NANO_SUPER).unwrap();
        decode_ceiling(bandwidth, Bytes((file_gb * 1e9).round() as u64)).unwrap()
    }

    #[test]
    fn decode_ceilings_of_the_three_qwen3_files() {
        // 102 / 1.11 = 91.89, 102 / 2.50 = 40.80, 102 / 5.03 = 20.28
        assert_eq!(ceiling(1.11).to_string(), "91.9 tok/s");
        assert_eq!(ceiling(2.50).to_string(), "40.8 tok/s");
        assert_eq!(ceiling(5.03).to_string(), "20.3 tok/s");
    }

    #[test]
    fn measured_decode_is_43_48_and_62_percent_of_the_ceiling() {
        // 39.42 / 91.89 = 0.429, 19.53 / 40.80 = 0.479, 12.64 / 20.28 = 0.623
        for (measured, file_gb, percent) in [
            (39.42, 1.11, "43"),
            (19.53, 2.50, "48"),
            (12.64, 5.03, "62"),
        ] {
            let share = share_of_ceiling(TokensPerSecond(measured), ceiling(file_gb));
            assert_eq!(format!("{:.0}", 100.0 * share), percent);
        }
    }

    #[test]
    fn qwen3_8b_caches_144_kib_per_token() {
        // 2 x 36 layers x 8 KV heads x 128 x 2 bytes
        let per_token = kv_bytes_per_token(36, 8, 128, 2);
        assert_eq!(per_token, Bytes(147_456));
        assert_eq!(per_token.to_string(), "144 KiB");
        assert_eq!(Bytes(per_token.0 * 4096), Bytes::mib(576));
        assert_eq!(Bytes(per_token.0 * 8192), Bytes::mib(1152));
    }

    #[test]
    fn the_long_prompt_takes_41_seconds_to_read() {
        // 32,585 / 787.2 = 41.39
        let seconds = prompt_seconds(32_585, TokensPerSecond(787.2));
        assert_eq!(format!("{seconds:.0}"), "41");
    }

    #[test]
    fn the_rk1_times_are_the_speeds_they_were_derived_from() {
        // 1,024 tokens in 18.77 s and in 12.39 s: Q8_0 reads a prompt 1.5 times as fast as Q4_K_M,
        // while Q4_K_M decodes 22.57 / 15.26 = 1.48 times as fast as Q8_0.
        let prefill = |seconds: f64| TokensPerSecond(1024.0 / seconds);
        assert_eq!(prefill(18.77).to_string(), "54.6 tok/s");
        assert_eq!(prefill(12.39).to_string(), "82.6 tok/s");
        assert_eq!(
            format!("{:.2}", prompt_seconds(1024, prefill(18.77))),
            "18.77"
        );
        assert_eq!(
            format!("{:.2}", prompt_seconds(1024, prefill(12.39))),
            "12.39"
        );
        assert_eq!(
            format!("{:.2}", prefill(12.39).0 / prefill(18.77).0),
            "1.51"
        );
        assert_eq!(format!("{:.2}", 22.57_f64 / 15.26), "1.48");
    }

    #[test]
    fn partial_offload_more_than_halves_decode() {
        // 12.23 tok/s with all layers on the GPU, 5.85 with 24 of 37.
        assert!(share_of_ceiling(TokensPerSecond(5.85), TokensPerSecond(12.23)) < 0.5);
    }
}
