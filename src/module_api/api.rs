//! Which functions of the server the module counts on.
//!
//! The server hands out its API as a table of pointers, and the only sign that one is absent is that it is null.
//! All that stand in the list below exist since Redis 7.0.0 and on every Valkey. [`missing_api`] checks them once,
//! while the module loads; from then on `api!` calls them without looking. A name that is not in the list does
//! not compile in `api!`, so the check and the calls cannot part ways. Functions that are newer are not listed:
//! they are looked up where they are used, and done without where the server lacks them.

use redis_module::raw;

macro_rules! required {
    ($($name:ident)*) => {
        /// One constant for each function in the list: the proof that `api!` asks for.
        // The allocator's four are called where they may be absent, so not by `api!`, but must be checked too.
        #[allow(non_upper_case_globals, missing_docs, dead_code)]
        pub mod required {
            $(pub const $name: () = ();)*
        }

        /// The first function of the list that this server lacks; `None` where it has all.
        ///
        /// The module's load must call this after the API table is filled and before anything else of
        /// `server`, and refuse to go on when it names one: every later `api!` call leans on the answer.
        pub fn missing_api() -> Option<&'static str> {
            $(
                // SAFETY: the static is written by the API's initialisation alone, before this runs and on
                // this thread; it is read here by value.
                let function = unsafe { raw::$name };
                if function.is_none() {
                    return Some(stringify!($name));
                }
            )*
            None
        }
    };
}

required! {
    RedisModule_Alloc
    RedisModule_Free
    RedisModule_Realloc
    RedisModule_Calloc
    RedisModule_Log
    RedisModule_GetDetachedThreadSafeContext
    RedisModule_SetModuleOptions
    RedisModule_Milliseconds
    RedisModule_GetContextFlags
    RedisModule_GetSelectedDb
    RedisModule_SelectDb
    RedisModule_AvoidReplicaTraffic
    RedisModule_ReplyWithLongLong
    RedisModule_ReplyWithStringBuffer
    RedisModule_ReplyWithSimpleString
    RedisModule_ReplyWithError
    RedisModule_ReplyWithNull
    RedisModule_ReplyWithNullArray
    RedisModule_ReplyWithArray
    RedisModule_ReplyWithMap
    RedisModule_Replicate
    RedisModule_ReplicateVerbatim
    RedisModule_SignalModifiedKey
    RedisModule_SignalKeyAsReady
    RedisModule_NotifyKeyspaceEvent
    RedisModule_StringPtrLen
    RedisModule_CreateString
    RedisModule_FreeString
    RedisModule_BlockClientOnKeys
    RedisModule_GetBlockedClientPrivateData
    RedisModule_GetBlockedClientReadyKey
    RedisModule_CreateTimer
    RedisModule_ScanCursorCreate
    RedisModule_ScanCursorDestroy
    RedisModule_Scan
    RedisModule_StopTimer
    RedisModule_SubscribeToServerEvent
    RedisModule_GetServerInfo
    RedisModule_ServerInfoGetFieldUnsigned
    RedisModule_ServerInfoGetFieldC
    RedisModule_FreeServerInfo
    RedisModule_OpenKey
    RedisModule_CloseKey
    RedisModule_KeyType
    RedisModule_ModuleTypeGetType
    RedisModule_ModuleTypeGetValue
    RedisModule_ModuleTypeSetValue
    RedisModule_GetServerVersion
    RedisModule_Call
    RedisModule_CallReplyType
    RedisModule_CallReplyStringPtr
    RedisModule_FreeCallReply
    RedisModule_ReplyWithCallReply
    RedisModule_RegisterCommandFilter
    RedisModule_CommandFilterArgsCount
    RedisModule_CommandFilterArgGet
    RedisModule_CreateCommand
    RedisModule_GetCommand
    RedisModule_IsKeysPositionRequest
    RedisModule_KeyAtPos
    RedisModule_SetCommandInfo
    RedisModule_RegisterNumericConfig
    RedisModule_RegisterBoolConfig
    RedisModule_LoadConfigs
}

/// The server's function of that name, to be called at once: `api!(RedisModule_Log)(ctx, level, …)`.
///
/// Expands to unsafe code and so stands in an `unsafe` block. What the block's `SAFETY` line must say is why the
/// arguments are right; that the pointer is there follows from [`missing_api`], which the load has passed.
macro_rules! api {
    ($name:ident) => {{
        const _: () = $crate::module_api::api::required::$name;
        redis_module::raw::$name.unwrap_unchecked()
    }};
}
pub(crate) use api;

#[cfg(test)]
mod tests {
    use super::missing_api;

    #[test]
    fn without_a_server_the_first_function_is_missing() {
        assert_eq!(missing_api(), Some("RedisModule_Alloc"));
    }
}
