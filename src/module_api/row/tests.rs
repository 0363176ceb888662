//! The syntax of rows, and their arguments in the server's form.

use super::*;

#[test]
fn a_row_is_written_as_its_syntax() {
    const ROW: Row = Row {
        name: c"DQ.PUSH",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::INSERT),
        acl: c"",
        summary: c"",
        complexity: c"",
        since: c"0.2.0",
        tips: c"",
        args: &[Arg::key(c"key"), Arg::string(c"payload").multiple()],
        options: &[
            &[Arg::oneof(c"when", &[Arg::token_int(c"DELAY", c"ms"), Arg::token_time(c"AT", c"unix-ms")]).optional()],
            &[
                Arg::oneof(c"state", &[Arg::token(c"a", c"A"), Arg::token(c"b", c"B")]).after(c"STATE").optional(),
                Arg::token(c"replace", c"REPLACE").optional(),
                Arg::block(c"two", &[Arg::int(c"one"), Arg::token_int(c"MORE", c"other").optional()]).after(c"TWO"),
            ],
        ],
    };
    let syntax = "DQ.PUSH key payload [payload ...] [DELAY ms | AT unix-ms] [STATE <A | B>] [REPLACE] \
                  TWO one [MORE other]";
    assert_eq!(ROW.to_string(), syntax);
    for token in ["delay", "AT", "STATE", "b", "TWO", "More"] {
        assert!(ROW.has_token(token.as_bytes()), "{token}");
    }
    assert!(!ROW.has_token(b"payload") && !ROW.has_token(b""));
}

#[test]
fn a_table_of_arguments_nests_and_ends_in_zero() {
    const ARGS: &[Arg] = &[
        Arg::key(c"key"),
        Arg::string(c"payload").multiple(),
        Arg::oneof(c"when", &[Arg::token_int(c"DELAY", c"ms"), Arg::token_time(c"AT", c"unix-ms")]).optional(),
    ];
    let mut tables = Vec::new();
    let start = Arg::table(ARGS, &mut tables);
    assert_eq!(tables.len(), 2);
    let top = &tables[1];
    assert!(std::ptr::eq(start, top.as_ptr()));
    assert_eq!(top.len(), 4);
    assert_eq!((top[0].key_spec_index, top[1].key_spec_index), (0, -1));
    assert!(top[0].subargs.is_null() && top[0].token.is_null());
    assert_eq!(top[1].flags, raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int);
    assert_eq!(top[2].flags, raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int);
    assert!(std::ptr::eq(top[2].subargs, tables[0].as_ptr()));
    assert_eq!(tables[0].len(), 3);
    // SAFETY: the tokens of the table are the constants above.
    assert_eq!(unsafe { CStr::from_ptr(tables[0][1].token) }, c"AT");
    assert!(top[3].name.is_null() && tables[0][2].name.is_null());
    assert!(Arg::table(&[], &mut tables).is_null());
}

#[test]
fn keys_are_told_in_both_ways() {
    assert_eq!(Keys::First(Access::READ).legacy(), (1, 1, 1));
    let counted = Keys::Counted(Access::READ).specs();
    // SAFETY: the kind says which field was set.
    assert_eq!(unsafe { counted[0].fk.keynum.firstkey }, 1);
    let specs = Keys::First(Access::DELETE).specs();
    assert_eq!(specs.len(), 2);
    assert_eq!(specs[1].begin_search_type, 0);
    // SAFETY: the kinds say which fields were set.
    unsafe {
        assert_eq!(specs[0].bs.index.pos, 1);
        assert_eq!(specs[0].fk.range.keystep, 1);
    }
}

#[test]
fn an_access_is_either_read_only_or_not() {
    let take = Access::READ.and(Access::DELETE);
    assert_eq!(take.bits() & raw::REDISMODULE_CMD_KEY_RO, 0);
    assert_ne!(take.bits() & raw::REDISMODULE_CMD_KEY_RW, 0);
    assert_ne!(take.bits() & raw::REDISMODULE_CMD_KEY_ACCESS, 0);
    assert_eq!(Access::PEEK.and(Access::READ), Access::READ);
}
