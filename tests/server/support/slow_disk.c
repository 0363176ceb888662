/* A slow disk: preloaded into a server, it makes one fsync in twenty take as many ms as DQ_SLOW_FSYNC says, as on a
   disk that is busy with something else. The tests must pass on it. A second slow one follows after as long a time at
   the earliest, so that a server that syncs before each reply still makes progress. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void dawdle(void) {
    static __thread long long rested_until;
    static __thread unsigned seed;
    const char *ms = getenv("DQ_SLOW_FSYNC");
    long long length = ms ? atoll(ms) : 0;
    if (!seed) seed = (unsigned)getpid() ^ (unsigned)now_ms();
    if (length <= 0 || now_ms() < rested_until || rand_r(&seed) % 20) return;
    struct timespec pause = {length / 1000, length % 1000 * 1000000};
    nanosleep(&pause, NULL);
    rested_until = now_ms() + length;
}

int fsync(int fd) {
    dawdle();
    return syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    dawdle();
    return syscall(SYS_fdatasync, fd);
}
