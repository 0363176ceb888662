/* Preloaded into a server, so that it cannot fork: as on a machine without memory for a second process. */

#include <errno.h>
#include <sys/types.h>

pid_t fork(void) {
    errno = ENOMEM;
    return -1;
}
