//! Times as the protocol has them (RFC 3339).

/// Formats a time, in milliseconds since the Unix epoch.
// B-87
pub(crate) fn timestamp(unix_ms: u64) -> String {
    let (days, rest) = (unix_ms / DAY_MS, unix_ms % DAY_MS);
    let (hour, minute, second, millis) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60, rest % 1000);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The date of a day since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01, in eras of 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_dates() {
        for (unix_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_785_542_400_000, "2026-08-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(unix_ms), expected);
        }
    }
}
