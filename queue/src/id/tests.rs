//! Sequences, ids and receipts, in both directions.

use super::*;

#[test]
fn a_sequence_is_read_back_as_it_is_printed() {
    for raw in [FIRST_MS << 20, (FIRST_MS << 20) + 1, ((FIRST_MS + 1) << 20) - 1, u64::MAX, 1_760_000_000_000 << 20 | 7]
    {
        let text = Sequence(raw).to_string();
        assert_eq!(Sequence::parse(text.as_bytes()), Some(Sequence(raw)));
        assert_eq!(Sequence(raw).write(&mut IdBuffer::new()), text.as_bytes());
    }
}

#[test]
fn only_the_printed_form_names_a_sequence() {
    for text in ["", "1", "-", "1-", "-1", "1001-5", "99999999999-0", "99999999999999999999-0"] {
        assert_eq!(Sequence::parse(text.as_bytes()), None, "{text}");
    }
    for text in ["0176000000000-1", "1760000000000-01", "1760000000000-1048576", "1760000000000-1-1"] {
        assert_eq!(Sequence::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn eight_digits_are_parsed_as_one_by_one() {
    let eight = |text| digits_of(text).map(joined);
    let one_by_one = |text: [u8; 8]| {
        let digits = text.iter().map(|byte| char::from(*byte).to_digit(10).map(u64::from));
        digits.reduce(|number, digit| Some(number? * 10 + digit?)).flatten()
    };
    for number in (0..100_000_000u64).step_by(9_973).chain([99_999_999, 12_345_678]) {
        let text: [u8; 8] = format!("{number:08}").into_bytes().try_into().unwrap();
        assert_eq!(eight(text), Some(number));
        for at in 0..8 {
            let mut text = text;
            text[at] = number as u8;
            assert_eq!(eight(text), one_by_one(text), "{text:?}");
        }
    }
    for byte in 0..=255 {
        for at in 0..8 {
            let mut text = *b"90909090";
            text[at] = byte;
            assert_eq!(eight(text), one_by_one(text), "{text:?}");
        }
    }
}

#[test]
fn a_sequence_never_repeats_nor_steps_back() {
    let at = |ms: u64| UnixMs::new(1_760_000_000_000 + ms);
    let late = Sequence::next(Sequence::ZERO, at(50)).unwrap();
    let after_a_step_back = Sequence::next(late, at(40)).unwrap();
    assert!(after_a_step_back > late);
    assert_eq!(Sequence::next(late, at(51)).unwrap().to_string(), "1760000000051-0");
    let in_1970 = Sequence::next(Sequence::ZERO, UnixMs::new(7)).unwrap();
    assert_eq!(in_1970.to_string(), "100000000000-0", "an id has 12 digits whatever the clock shows");
    assert_eq!(Sequence::next(Sequence(u64::MAX), UnixMs::MAX), None);
}

#[test]
fn numbers_that_were_lost_are_passed_over() {
    let known = Sequence::next(Sequence::ZERO, UnixMs::new(1_760_000_000_050)).unwrap();
    let next = |now| {
        let mut floor = Floor { start: 300, gap: 7, ..Floor::default() };
        floor.raise(known, Receipt(known.0));
        floor.pass_over_lost(UnixMs::new(now));
        assert_eq!(floor.receipt, floor.sequence);
        Sequence::next(Sequence(floor.sequence), UnixMs::new(now)).unwrap().to_string()
    };
    assert_eq!(next(1_760_000_000_040), "1760000000058-301");
    assert_eq!(next(1_760_000_000_048), "1760000000052-301", "the gap is not longer than the clock is behind");
    assert_eq!(next(1_760_000_000_050), "1760000000051-301");
    assert_eq!(next(1_760_000_000_051), "1760000000051-0", "a clock that is ahead needs no gap");
}

#[test]
fn receipts_rise_wherever_a_millisecond_begins() {
    let at = |ms: u64| UnixMs::new(1_760_000_000_000 + ms);
    let next = |last, ms, start| Receipt::next(last, at(ms), start).unwrap();
    let first = next(Receipt::ZERO, 50, 7);
    assert_eq!((first.began(), first.0 & 0xF_FFFF), (at(50), 7));
    assert_ne!(next(Receipt::ZERO, 50, 8), first, "another process");
    let more = [next(first, 50, 7), next(first, 40, 7), next(first, 50, 3), next(first, 51, 3)];
    assert!(more.iter().all(|later| *later > first), "{more:?}");
}

#[test]
fn names_are_short_without_hash_and_unlike_generated_ids() {
    assert!(Id::is_name(b"order-1001") && Id::is_name(&[0, 255]) && Id::is_name(&[b'a'; 255]));
    for taken in [&b"1001-5"[..], b"2024-01", b"99999999999-1", b"1760000000000-", b"1760000000000-1a"] {
        assert!(Id::is_name(taken));
        assert_eq!(Id::parse(taken), Some(Id::Named(taken)));
    }
    for refused in [&b""[..], b"a#1", b"000000000007-0", b"1760000000000-1", b"99999999999999999999999-1", &[b'a'; 256]]
    {
        assert!(!Id::is_name(refused));
    }
    assert_eq!(Id::parse(b"1-"), Some(Id::Named(b"1-")));
}

#[test]
fn a_target_is_an_id_or_a_receipt() {
    let named = Target { id: Id::Named(b"a"), receipt: Some(Receipt(7)) };
    assert_eq!(Target::parse(b"a#7"), Some(named));
    let printed = |sequence, name, receipt| {
        let mut buffer = IdBuffer::new();
        let id = buffer.id(sequence, name);
        let receipt = buffer.receipt(id, receipt);
        String::from_utf8(buffer.text(receipt).to_vec()).unwrap()
    };
    assert_eq!(printed(Sequence(0), Some(&b"a"[..]), Receipt(7)), "a#7");
    let numbered = Target { id: Id::Named(b"1001-5"), receipt: Some(Receipt(7)) };
    assert_eq!(Target::parse(b"1001-5#7"), Some(numbered));
    assert_eq!(printed(Sequence(1 << 20), None, Receipt(u64::MAX)), "1-0#18446744073709551615");
    for number in (0..20).map(|digits| 12_345_678_901_234_567_890 / 10u64.pow(digits)) {
        let receipt = Target::parse(format!("a#{number}").as_bytes()).unwrap().receipt;
        assert_eq!(receipt, Some(Receipt(number)));
    }
    for nothing in
        [&b"a#"[..], b"#7", b"a#x", b"a#07", b"a#7#7", b"a#18446744073709551616", b"a#0123456789", b"a#12345678x"]
    {
        assert_eq!(Target::parse(nothing), None);
    }
}
