/* A machine whose clock is wrong: shifts the time of day by CLOCK_SHIFT_S seconds, and nothing else.
   libfaketime also touches the monotonic clock, on which Python sleeps and waits, and makes both fail. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long shift(void) { const char *s = getenv("CLOCK_SHIFT_S"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t which, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, which, at);
  if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
  return failed; }
int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; return 0; }
time_t time(time_t *at) {
  struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (at) *at = now.tv_sec; return now.tv_sec; }
