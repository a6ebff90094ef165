/* Two cards in the words of NVML. Card 1 hangs where NVML_STUB_HANG is set, has no power meter ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef int ret;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { char legacy[16]; unsigned int domain, bus, device, id, sub; char bus_id[32]; } pci;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } process;
static int handles[2] = {0, 1};
ret nvmlInitWithFlags(unsigned int flags) { return 0; }
ret nvmlInit_v2(void) { return 0; }
ret nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(ret r) { return "stub"; }
ret nvmlDeviceGetCount_v2(unsigned int *n) { *n = 2; return 0; }
ret nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **h) { if (i > 1) return 2; *h = &handles[i]; return 0; }
ret nvmlDeviceGetName(void *h, char *s, unsigned int n) { snprintf(s, n, "Stub %d", *(int *)h); return 0; }
ret nvmlDeviceGetUUID(void *h, char *s, unsigned int n) { snprintf(s, n, "GPU-stub-%d", *(int *)h); return 0; }
ret nvmlDeviceGetPciInfo_v3(void *h, pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->bus_id, 32, "00000000:0%d:00.0", *(int *)h); return 0; }
ret nvmlDeviceGetMemoryInfo(void *h, memory *m) {
  m->total = 16384ULL << 20; m->used = (1024ULL << 20) * (1 + *(int *)h); m->free = m->total - m->used; return 0; }
ret nvmlDeviceGetUtilizationRates(void *h, utilization *u) {
  if (*(int *)h == 1 && getenv("NVML_STUB_HANG")) sleep(3600);
  u->gpu = 40 + *(int *)h; u->memory = 5; return 0; }
ret nvmlDeviceGetTemperature(void *h, int sensor, unsigned int *t) { *t = 55; return 0; }
ret nvmlDeviceGetPowerUsage(void *h, unsigned int *mw) { if (*(int *)h == 1) return 3; *mw = 120500; return 0; }
ret nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned int *n, process *p) {
  unsigned int room = *n; *n = 1; if (room < 1) return 7;
  p[0].pid = 4242; p[0].used = 512ULL << 20; p[0].gi = p[0].ci = 0xffffffff; return 0; }
