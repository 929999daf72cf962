//! Numbers as programs and people write them.

/// A number that a row must have right: finite, with a decimal point, or a comma where that can be
/// nothing else.
///
/// Errors: a clause that says what is wrong with it.
pub(super) fn real(text: &str) -> Result<f64, String> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return match number.is_finite() {
            true => Ok(number),
            false => Err(format!("is {text}, which is no number")),
        };
    }
    let (digits, decimals) = text
        .split_once(',')
        .ok_or_else(|| format!("is {text:?}, which is no number"))?;
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_decimal = all_digits(digits.strip_prefix('-').unwrap_or(digits))
        && all_digits(decimals)
        // 13,142 may as well be thirteen thousand.
        && decimals.len() != 3;
    match format!("{digits}.{decimals}").parse() {
        Ok(number) if is_decimal => Ok(number),
        _ => Err(format!(
            "is {text}, and it is not clear what the comma stands for; write numbers with a decimal point"
        )),
    }
}

/// A whole number.
pub(super) fn whole(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// Yes or no, as one of the formats writes it.
pub(super) fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "true" | "on" => Some(true),
        "0" | "false" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_comma_is_read_or_refused_and_never_dropped() {
        assert_eq!(real("131,42"), Ok(131.42));
        assert_eq!(real("240,845721"), Ok(240.845_721));
        assert_eq!(real("131.42"), Ok(131.42));
        for unclear in ["13,142", "1,234.56", "1,2,3", ",5", "5,"] {
            let reason = real(unclear).unwrap_err();
            assert!(reason.contains("comma"), "{reason}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        for text in ["nan", "-nan", "inf", "NaN", "-inf", "", "fast", "-nan(ind)"] {
            let reason = real(text).unwrap_err();
            assert!(reason.ends_with("no number"), "{reason}");
        }
    }
}
