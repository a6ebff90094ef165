/* Two cards in the words of NVML, joined by a link. Card 1 hangs where NVML_STUB_HANG is set and is lost where
   NVML_STUB_LOST is; it is cut into two slices where NVML_STUB_MIG is. Card 0 has three memory errors where
   NVML_STUB_ECC is set. Card 1 has no power meter ever. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef int ret;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { char legacy[16]; unsigned int domain, bus, device, id, sub; char bus_id[32]; } pci;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } process;
static int handles[4] = {0, 1, 2, 3}; /* 2 and 3: slices of card 1 */
ret nvmlInitWithFlags(unsigned int flags) { return 0; }
ret nvmlInit_v2(void) { return 0; }
ret nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(ret r) { return "stub"; }
ret nvmlDeviceGetCount_v2(unsigned int *n) { *n = 2; return 0; }
ret nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **h) { if (i > 1) return 2; *h = &handles[i]; return 0; }
ret nvmlDeviceGetName(void *h, char *s, unsigned int n) { snprintf(s, n, "Stub %d", *(int *)h); return 0; }
ret nvmlDeviceGetUUID(void *h, char *s, unsigned int n) {
  snprintf(s, n, *(int *)h > 1 ? "MIG-stub-%d" : "GPU-stub-%d", *(int *)h); return 0; }
ret nvmlDeviceGetPciInfo_v3(void *h, pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->bus_id, 32, "00000000:0%d:00.0", *(int *)h); return 0; }
ret nvmlDeviceGetMemoryInfo(void *h, memory *m) {
  if (*(int *)h > 1) { m->total = 8192ULL << 20; m->used = 0; m->free = m->total; return 0; }
  m->total = 16384ULL << 20; m->used = (1024ULL << 20) * (1 + *(int *)h); m->free = m->total - m->used; return 0; }
ret nvmlDeviceGetUtilizationRates(void *h, utilization *u) {
  if (*(int *)h == 1 && getenv("NVML_STUB_HANG")) sleep(3600);
  if (*(int *)h == 1 && getenv("NVML_STUB_LOST")) return 15;
  u->gpu = 40 + *(int *)h; u->memory = 5; return 0; }
ret nvmlDeviceGetTemperature(void *h, int sensor, unsigned int *t) { *t = 55; return 0; }
ret nvmlDeviceGetPowerUsage(void *h, unsigned int *mw) { if (*(int *)h == 1) return 3; *mw = 120500; return 0; }
ret nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned int *n, process *p) {
  unsigned int room = *n; *n = 1; if (room < 1) return 7;
  p[0].pid = 4242; p[0].used = 512ULL << 20; p[0].gi = p[0].ci = 0xffffffff; return 0; }
ret nvmlDeviceGetMPSComputeRunningProcesses_v3(void *h, unsigned int *n, process *p) {
  unsigned int room = *n, there = *(int *)h == 0 && getenv("NVML_STUB_MPS"); *n = there;
  if (room < there) return 7;
  if (there) { p[0].pid = 4343; p[0].used = 256ULL << 20; p[0].gi = p[0].ci = 0xffffffff; }
  return 0; }
ret nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor) { *major = 7; *minor = 5; return 0; }
ret nvmlDeviceGetComputeMode(void *h, unsigned int *mode) {
  if (getenv("NVML_STUB_HANG")) sleep(3600);
  *mode = *(int *)h == 1 ? 3 : 0; return 0; }
ret nvmlDeviceGetTotalEccErrors(void *h, int kind, int counter, unsigned long long *n) {
  if (*(int *)h) return 3; *n = getenv("NVML_STUB_ECC") ? 3 : 0; return 0; }
ret nvmlDeviceGetNvLinkState(void *h, unsigned int link, unsigned int *on) { if (link > 0) return 2; *on = 1; return 0; }
ret nvmlDeviceGetNvLinkRemotePciInfo_v2(void *h, unsigned int link, pci *p) {
  memset(p, 0, sizeof *p); snprintf(p->bus_id, 32, "00000000:0%d:00.0", 1 - *(int *)h); return 0; }
ret nvmlDeviceGetMigMode(void *h, unsigned int *now, unsigned int *next) {
  *now = *next = *(int *)h == 1 && getenv("NVML_STUB_MIG") ? 1 : 0; return 0; }
ret nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned int *n) { *n = 7; return 0; }
ret nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned int i, void **s) {
  if (i > 1) return 6; *s = &handles[2 + i]; return 0; }
ret nvmlDeviceGetHandleByUUID(const char *id, void **h) { *h = &handles[id[9] - '0']; return 0; }
