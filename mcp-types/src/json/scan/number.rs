//! The grammar of numbers.

use super::{ScanError, Scanner};

impl Scanner<'_> {
    /// Scans a number; the scanner is at its first byte.
    pub(super) fn number(&mut self) -> Result<(), ScanError> {
        if self.byte() == Some(b'-') {
            self.advance();
        }
        if self.byte() == Some(b'0') {
            self.advance();
            // `01` is not a number; without this check it would be reported as two values.
            if let Some(b'0'..=b'9') = self.byte() {
                return Err(self.expected("no digit after a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.advance();
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.advance();
            if let Some(b'+' | b'-') = self.byte() {
                self.advance();
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        if !matches!(self.byte(), Some(b'0'..=b'9')) {
            return Err(self.expected("a digit"));
        }
        while let Some(b'0'..=b'9') = self.byte() {
            self.advance();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::json::scan::{Problem, check};

    #[test]
    fn numbers_follow_the_grammar() {
        for text in
            ["0", "-0", "10", "0.5", "-1.25", "1e5", "1E+05", "0e-0", "123456789012345678901234567890", "1e999999"]
        {
            assert_eq!(check(text, 1), Ok(text));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, at, what) in [
            ("01", 1, "no digit after a leading zero"),
            ("-", 1, "a digit"),
            ("-a", 1, "a digit"),
            ("1.", 2, "a digit"),
            ("1.e5", 2, "a digit"),
            ("1e", 2, "a digit"),
            ("1e+", 3, "a digit"),
            ("+1", 0, "a value"),
            (".5", 0, "a value"),
            ("1x", 1, "the end of the text"),
            ("NaN", 0, "a value"),
        ] {
            let error = check(text, 1).unwrap_err();
            assert_eq!((error.at, error.problem), (at, Problem::Expected(what)), "{text}");
        }
    }
}
