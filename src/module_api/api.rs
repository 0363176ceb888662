//! The list of server functions that the module requires.
//!
//! The server exports its API as a table of function pointers, and a missing function is a null pointer. Every function
//! in the list below exists since Redis 7.0.0 and in every Valkey. [`missing_api`] checks all of them once, while the
//! module loads; after that `api!` calls them without a check. A name that is not in the list does not compile in
//! `api!`, so the check and the calls cannot diverge. Newer functions are not listed: they are looked up at the place
//! of use, and the module does without them if the server lacks them.

use redis_module::raw;

macro_rules! required {
    ($($name:ident)*) => {
        /// One constant for each function in the list. `api!` refers to it, which proves that the function was checked.
        #[allow(non_upper_case_globals, dead_code)]
        pub mod required {
            $(pub const $name: () = ();)*
        }

        /// Returns the first function of the list that this server lacks, or `None` if it has all of them.
        ///
        /// The load must call this after the API table is filled in and before it uses anything else of `module_api`,
        /// and must fail if a name is returned: every later `api!` call relies on the answer.
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
    RedisModule_PublishMessage
    RedisModule_GetNotifyKeyspaceEvents
    RedisModule_StringPtrLen
    RedisModule_CreateString
    RedisModule_FreeString
    RedisModule_RegisterCommandFilter
    RedisModule_UnregisterCommandFilter
    RedisModule_CommandFilterArgGet
    RedisModule_CommandFilterArgReplace
    RedisModule_GetClientId
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
    RedisModule_CallReplyArrayElement
    RedisModule_CallReplyStringPtr
    RedisModule_FreeCallReply
    RedisModule_ReplyWithCallReply
    RedisModule_CreateCommand
    RedisModule_GetCommand
    RedisModule_IsKeysPositionRequest
    RedisModule_KeyAtPosWithFlags
    RedisModule_IsChannelsPositionRequest
    RedisModule_ChannelAtPosWithFlags
    RedisModule_SetCommandInfo
    RedisModule_RegisterNumericConfig
    RedisModule_RegisterBoolConfig
    RedisModule_RegisterEnumConfig
    RedisModule_LoadConfigs
    RedisModule_InfoAddSection
    RedisModule_InfoAddFieldULongLong
    RedisModule_InfoAddFieldCString
    RedisModule_InfoBeginDictField
    RedisModule_InfoEndDictField
    RedisModule_GetDbIdFromIO
    RedisModule_GetKeyNameFromIO
    RedisModule_GetToDbIdFromOptCtx
    RedisModule_GetToKeyNameFromOptCtx
    RedisModule_EmitAOF
    RedisModule_DigestAddStringBuffer
    RedisModule_DigestEndSequence
}

/// The server's function of that name, for an immediate call: `api!(RedisModule_Log)(ctx, level, …)`.
///
/// It expands to unsafe code, so it must stand in an `unsafe` block. The block's `SAFETY` comment must say why the
/// arguments are valid. That the pointer is not null follows from [`missing_api`], which the load has passed.
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
