//! The entry point of the fuzzer for the argument parsers. Every input must be accepted, or refused with a valid error.

use super::error::Error;
use super::PARSERS;
use crate::module_api::args::with_words;
use crate::module_api::register::Call;

/// Splits the input into lines and passes them as words to the parser that the first byte selects.
pub fn arguments(bytes: &[u8]) {
    let Some((which, lines)) = bytes.split_first() else { return };
    let words: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    with_words(&words, |ctx, args| {
        let mut call = Call { ctx, args };
        let Some(parse) = PARSERS.get(usize::from(*which) % PARSERS.len()) else { return };
        let outcome = parse(&mut call);
        if let Err(error) = outcome {
            assert!(fits_reply(&error), "{error}");
        }
    });
}

/// Returns whether an error has its code and fits on one reply line.
fn fits_reply(error: &Error) -> bool {
    let text = error.to_string();
    text.starts_with("ERR ") && text.len() < 1_000
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use std::path::Path;

    #[test]
    fn words_that_the_fuzzer_made_are_understood_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/arguments");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(inputs.len() > 10);
        for input in inputs {
            arguments(&std::fs::read(input).unwrap());
        }
    }
}
