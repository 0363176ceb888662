/* A disk that forgets: preloaded into a server, it notes in the folder named by DQ_POWER what has reached the disk,
   which is what a power cut leaves. A file has as many bytes as it had at its last fsync, and a folder the names that
   it had at its own. A link keeps each file that is unlinked or replaced later. The real disk is not waited for. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char kept[PATH_MAX / 2];
static int notes = -1;

__attribute__((constructor)) static void attach(void) {
    const char *folder = getenv("DQ_POWER");
    char path[PATH_MAX];
    if (!folder || strlen(folder) >= sizeof kept) return;
    strcpy(kept, folder);
    snprintf(path, sizeof path, "%s/notes", kept);
    notes = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

/* Notes the names in a folder in one line: 'D' if they are on the disk, 'O' if an operation has changed them. */
static void note_folder(char kind, const char *path) {
    static __thread char line[65536];
    char whole[PATH_MAX];
    if (notes < 0 || !realpath(path, whole)) return;
    DIR *folder = opendir(whole);
    if (!folder) return;
    size_t length = (size_t)snprintf(line, sizeof line, "%c\t%s", kind, whole);
    struct dirent *entry;
    while ((entry = readdir(folder)) && length + 300 < sizeof line)
        if (entry->d_type == DT_REG)
            length += (size_t)sprintf(line + length, "\t%s\t%lu", entry->d_name, (unsigned long)entry->d_ino);
    closedir(folder);
    line[length++] = '\n';
    if (write(notes, line, length) < 0) abort();
}

int fsync(int file) {
    struct stat is;
    char path[64], target[PATH_MAX], line[64];
    if (notes < 0) return (int)syscall(SYS_fsync, file);
    if (fstat(file, &is)) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (S_ISDIR(is.st_mode)) {
        note_folder('D', path);
        return 0;
    }
    snprintf(target, sizeof target, "%s/%lu", kept, (unsigned long)is.st_ino);
    linkat(AT_FDCWD, path, AT_FDCWD, target, AT_SYMLINK_FOLLOW);
    int length = snprintf(line, sizeof line, "S\t%lu\t%ld\n", (unsigned long)is.st_ino, (long)is.st_size);
    if (write(notes, line, (size_t)length) < 0) abort();
    return 0;
}

int fdatasync(int file) { return fsync(file); }

static void note_parent(const char *path) {
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof copy) return;
    strcpy(copy, path);
    note_folder('O', dirname(copy));
}

int rename(const char *from, const char *to) {
    int failed = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!failed) note_parent(to);
    return failed;
}

int unlink(const char *path) {
    int failed = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!failed) note_parent(path);
    return failed;
}
