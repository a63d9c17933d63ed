/* Bad, as it is no backend at all: a disk that fills up, for LD_PRELOAD. Of the writes to files below
 * $WEFT_FULL_DISK, the one numbered $WEFT_FULL_DISK_AT (from 0) takes half of what it is given, and from then
 * on nothing is taken, nor brought to the disk. The first time it says so on standard error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static long writes = 0; /* one thread writes files */

static int on_that_disk(int fd) {
  const char* folder = getenv("WEFT_FULL_DISK");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = folder ? readlink(link, path, sizeof path - 1) : -1;
  return n > 0 && strncmp(path, folder, strlen(folder)) == 0;
}

static long full_at(void) {
  const char* at = getenv("WEFT_FULL_DISK_AT");
  return at ? atol(at) : 0;
}

static ssize_t full(void) {
  errno = ENOSPC;
  return -1;
}

ssize_t write(int fd, const void* bytes, size_t n) {
  ssize_t (*real)(int, const void*, size_t) = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (!on_that_disk(fd)) return real(fd, bytes, n);
  const long number = writes++;
  if (number > full_at()) return full();
  if (number < full_at()) return real(fd, bytes, n);
  static const char words[] = "the disk is full\n";
  if (real(2, words, sizeof words - 1) < 0) _exit(3);
  return n > 1 ? real(fd, bytes, n / 2) : full();
}

ssize_t writev(int fd, const struct iovec* parts, int n) {
  if (n > 0 && parts[0].iov_len > 0) return write(fd, parts[0].iov_base, parts[0].iov_len);
  return n > 1 ? writev(fd, parts + 1, n - 1) : 0;
}

int fsync(int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return on_that_disk(fd) && writes > full_at() ? (int)full() : real(fd);
}
