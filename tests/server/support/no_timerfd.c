/* Preloaded into a server: a sandbox in which one system call of a precise timer fails, the one that DQ_NO_TIMERFD
   names. A filter in the kernel and no function of the same name, because some servers load modules in such a way that
   they do not see preloaded functions. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

__attribute__((constructor)) static void refuse(void) {
    const char *named = getenv("DQ_NO_TIMERFD");
    if (!named) return;
    unsigned call = strcmp(named, "timerfd_create") ? SYS_timerfd_settime : SYS_timerfd_create;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) abort();
}
