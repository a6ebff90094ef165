/* The checkpoint calls of a CUDA driver. Beside the library lies one file per CUDA process, named by its pid, with its
   state as a digit; `calls` tells in order what was done; `fail-CALL` holds the code that a call answers once, or
   always where it is followed by a plus; while `hang-CALL` is there the call does not return. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef int ret;
static const char *path(const char *name) {
  static char whole[4200]; static char home[4096]; Dl_info info;
  if (!home[0] && dladdr((void *)path, &info)) { strncpy(home, info.dli_fname, 4000); strcpy(home, dirname(strdup(home))); }
  snprintf(whole, sizeof whole, "%s/%s", home, name); return whole; }
static int get(int pid) {
  char name[32]; snprintf(name, 32, "%d", pid);
  FILE *f = fopen(path(name), "r"); int c = f ? fgetc(f) - '0' : -1; if (f) fclose(f); return c; }
static void put(int pid, int state) {
  char name[32], part[40]; snprintf(name, 32, "%d", pid); snprintf(part, 40, "%d.part", pid);
  char from[4200]; strcpy(from, path(part));
  FILE *f = fopen(from, "w"); fputc('0' + state, f); fclose(f); rename(from, path(name)); }
static ret act(const char *call, int pid, int from, int to) {
  char name[64];
  FILE *f = fopen(path("calls"), "a"); fprintf(f, "%s %d\n", call, pid); fclose(f);
  snprintf(name, 64, "hang-%s", call);
  while (access(path(name), F_OK) == 0) usleep(10000);
  snprintf(name, 64, "fail-%s", call);
  f = fopen(path(name), "r");
  if (f) { int code = 0; char more = 0; fscanf(f, "%d%c", &code, &more); fclose(f); if (more != '+') unlink(path(name)); return code; }
  int now = get(pid);
  if (now < 0) return 1;
  if (now != from) return 401; /* CUDA_ERROR_ILLEGAL_STATE */
  put(pid, to); return 0; }
ret cuInit(unsigned int flags) { return 0; }
ret cuDriverGetVersion(int *v) { *v = 12080; return 0; }
ret cuGetErrorName(int code, const char **name) {
  *name = code == 401 ? "CUDA_ERROR_ILLEGAL_STATE" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" :
    code == 801 ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR_UNKNOWN"; return 0; }
ret cuCheckpointProcessGetState(int pid, int *state) { int now = get(pid); if (now < 0) return 1; *state = now; return 0; }
ret cuCheckpointProcessLock(int pid, unsigned int *args) {
  if (args[0] == 0 || args[1] != 0 || args[15] != 0) return 1; /* a time limit, and zeros */
  return act("Lock", pid, 0, 1); }
ret cuCheckpointProcessCheckpoint(int pid, void *args) { return act("Checkpoint", pid, 1, 2); }
#ifndef OLD
ret cuCheckpointProcessRestore(int pid, void *args) { return act("Restore", pid, 2, 1); }
ret cuCheckpointProcessUnlock(int pid, void *args) { return act("Unlock", pid, 1, 0); }
#endif
