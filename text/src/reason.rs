//! The operating system's error messages.

use std::io;

/// The operating system's message for an error, without the number appended by the standard library.
pub fn error_reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_are_removed() {
        assert_eq!(error_reason(&io::Error::from_raw_os_error(28)), "No space left on device");
        assert_eq!(error_reason(&io::Error::other("no number here")), "no number here");
    }
}
