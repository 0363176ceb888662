/* A module whose commands do nothing: the least that any module can cost.
 *
 * LIMIT.PUSH, LIMIT.POP and LIMIT.ACK take the arguments of DQ.PUSH, DQ.POP and DQ.ACK and send replies of the same
 * shape. They open no key, store nothing and replicate nothing. `benches/instructions.py` builds this file with
 *
 *     cc -O2 -fPIC -shared -o limit.so benches/limit/limit.c
 *
 * and compares dq with it. The few functions of the module API that it needs are declared here, so that no header of a
 * server has to be installed.
 */
#include <stddef.h>
#include <string.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef int Command(RedisModuleCtx *ctx, RedisModuleString **argv, int argc);

enum { OK = 0, ERR = 1, API_VERSION = 1, MODULE_VERSION = 1, PAYLOAD_BYTES = 100 };

static void (*SetModuleAttribs)(RedisModuleCtx *ctx, const char *name, int version, int api_version);
static int (*CreateCommand)(RedisModuleCtx *ctx, const char *name, Command *command, const char *flags, int first_key,
                            int last_key, int key_step);
static int (*WrongArity)(RedisModuleCtx *ctx);
static int (*ReplyWithStringBuffer)(RedisModuleCtx *ctx, const char *bytes, size_t length);
static int (*ReplyWithLongLong)(RedisModuleCtx *ctx, long long value);
static int (*ReplyWithArray)(RedisModuleCtx *ctx, long length);

/* An id and a receipt have as many bytes as those of dq. */
static const char ID[] = "1795272127817-1";
static const char RECEIPT[] = "1795272127817-1#1882479266696790016";
static const char PAYLOAD[PAYLOAD_BYTES] = {0};

static int text(RedisModuleCtx *ctx, const char *words)
{
    return ReplyWithStringBuffer(ctx, words, strlen(words));
}

/* LIMIT.PUSH key payload */
static int push(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    return argc < 3 ? WrongArity(ctx) : text(ctx, ID);
}

/* LIMIT.POP key: an array of one message, [id, payload, attempt, receipt] */
static int pop(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    if (argc < 2) return WrongArity(ctx);
    ReplyWithArray(ctx, 1);
    ReplyWithArray(ctx, 4);
    text(ctx, ID);
    ReplyWithStringBuffer(ctx, PAYLOAD, PAYLOAD_BYTES);
    ReplyWithLongLong(ctx, 1);
    return text(ctx, RECEIPT);
}

/* LIMIT.ACK key id|receipt */
static int ack(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv;
    return argc < 3 ? WrongArity(ctx) : ReplyWithLongLong(ctx, 1);
}

int RedisModule_OnLoad(RedisModuleCtx *ctx, RedisModuleString **argv, int argc)
{
    (void)argv, (void)argc;
    /* A context begins with the function that finds the others by their names. */
    int (*get)(const char *name, void *function) = *(int (**)(const char *, void *))ctx;
#define FIND(name) (get("RedisModule_" #name, (void *)&name) == OK)
    if (!FIND(SetModuleAttribs) || !FIND(CreateCommand) || !FIND(WrongArity) || !FIND(ReplyWithStringBuffer) ||
        !FIND(ReplyWithLongLong) || !FIND(ReplyWithArray))
        return ERR;
    SetModuleAttribs(ctx, "limit", MODULE_VERSION, API_VERSION);
    /* With the flags and keys of the commands of dq, since the server looks at them. */
    if (CreateCommand(ctx, "limit.push", push, "write deny-oom fast", 1, 1, 1) != OK ||
        CreateCommand(ctx, "limit.pop", pop, "write blocking", 1, 1, 1) != OK ||
        CreateCommand(ctx, "limit.ack", ack, "write fast", 1, 1, 1) != OK)
        return ERR;
    return OK;
}
