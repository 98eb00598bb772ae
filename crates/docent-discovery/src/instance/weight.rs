/// Returns the weight for a number that any program may have written: rounded to the nearest whole number, at
/// least 1 unless it is 0, at most `u32::MAX`. Returns `None` for a negative number and for anything else.
/// Another program may use the key with another meaning, which must not hide the instance.
pub(crate) fn read(text: &str) -> Option<u32> {
    let number: f64 = text.parse().ok()?;
    if number.is_nan() || number < 0.0 {
        return None;
    }
    let least = if number > 0.0 { 1.0 } else { 0.0 };
    // The cast saturates: larger numbers become the maximum.
    Some(number.round().max(least) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_into_the_range_and_other_values_are_ignored() {
        for (text, weight) in [
            ("0", 0),
            ("-0.0", 0),
            ("0.001", 1),
            ("1", 1),
            ("1.4", 1),
            ("2.5", 3),
            ("4294967295", u32::MAX),
            ("4294967296", u32::MAX),
            ("1e400", u32::MAX),
        ] {
            assert_eq!(read(text), Some(weight), "{text}");
        }
        for text in ["", "-1", "-1e400", "NaN", "heavy", "\"3\"", "null", "[1]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
