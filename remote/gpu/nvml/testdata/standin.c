/* A stand-in for libnvidia-ml.so.1, so that the reader can be tested without a GPU.
 * It is not NVIDIA's and shows no real hardware; its cards say so in their names.
 * LEVEL (418, 470, 535, 590) chooses which symbols it has, as drivers did.
 * The file named by STANDIN_CONTROL is mapped: a test sets words in it while the
 * library is in use. */
#include "nvml.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GPUS, HANG, LOST, XID_SEQ, XID_GPU, XID_CODE, FAIL_CALL, FAIL_RET, INIT_HANG, INIT_RET, MIG, RESET, PROCS, PCIE_CALLS, CALLS, LINKS_UP, PCIE_IN_A_ROW, ONE_EACH, PIDS = 32 };
enum { UTIL = 1, MEMORY, POWER, TEMP, CLOCK, REASONS, ECC, REMAP, FAN, PSTATE, ENCODER, PROCESSES, LINK, FIELDS, GEN, HANDLE };

static volatile int32_t *ctl;
static int seen;

struct nvmlDevice_st { int index, part; };
static struct nvmlDevice_st devs[64], parts[64][8];
struct nvmlEventSet_st { int n; };
static struct nvmlEventSet_st set;

static int w(int i) { return ctl ? ctl[i] : i == HANG || i == LOST || i == RESET ? -1 : 0; }

static nvmlReturn_t enter(nvmlDevice_t d, int call) {
	if (ctl) ctl[CALLS]++;
	while (d.handle->index == w(HANG)) usleep(20000);
	if (d.handle->index == w(LOST)) return NVML_ERROR_GPU_IS_LOST;
	if (d.handle->index == w(RESET) && call == UTIL) return NVML_ERROR_RESET_REQUIRED;
	if (call == w(FAIL_CALL)) return w(FAIL_RET);
	return NVML_SUCCESS;
}
#define ENTER(call) do { nvmlReturn_t r_ = enter(device, call); if (r_) return r_; } while (0)
#define FN nvmlReturn_t DECLDIR

FN nvmlInit_v2(void) {
	const char *path = getenv("STANDIN_CONTROL");
	int fd = path ? open(path, O_RDWR) : -1;
	if (fd >= 0) {
		void *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p != MAP_FAILED) ctl = p;
		close(fd);
	}
	for (int i = 0; i < 64; i++) devs[i].index = i;
	while (w(INIT_HANG)) usleep(20000);
	seen = w(XID_SEQ);
	return w(INIT_RET);
}
FN nvmlShutdown(void) { return NVML_SUCCESS; }
const DECLDIR char *nvmlErrorString(nvmlReturn_t r) {
	static char text[40];
	switch (r) {
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_UNKNOWN: return "Unknown Error";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	default: snprintf(text, sizeof text, "stand-in error %d", r); return text;
	}
}
FN nvmlSystemGetDriverVersion(char *v, unsigned n) {
	const char *s = getenv("STANDIN_DRIVER");
	snprintf(v, n, "%s", s ? s : "590.00");
	return NVML_SUCCESS;
}
FN nvmlDeviceGetCount_v2(unsigned *n) { *n = w(GPUS); return NVML_SUCCESS; }
FN nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
	if ((int)i == w(LOST) && w(FAIL_CALL) == HANDLE) return NVML_ERROR_GPU_IS_LOST;
	d->handle = &devs[i];
	return NVML_SUCCESS;
}
FN nvmlDeviceGetName(nvmlDevice_t device, char *s, unsigned n) {
	ENTER(0);
	if (device.handle->part) snprintf(s, n, "NVIDIA Stand-in MIG %dg.10gb", device.handle->part);
	else snprintf(s, n, "NVIDIA Stand-in \033[31mCard");
	return NVML_SUCCESS;
}
FN nvmlDeviceGetUUID(nvmlDevice_t device, char *s, unsigned n) {
	ENTER(0);
	snprintf(s, n, "%s-standin-%d-%d", device.handle->part ? "MIG" : "GPU", device.handle->index, device.handle->part);
	return NVML_SUCCESS;
}
FN nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *p) {
	ENTER(0);
	snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", device.handle->index + 1);
	return NVML_SUCCESS;
}
FN nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *m) {
	ENTER(MEMORY);
	m->total = 80ull << 30;
	m->used = (10ull << 30) + (300 << 20);
	if (device.handle->part) m->total = 10ull << 30, m->used = 1ull << 30;
	m->free = m->total - m->used;
	return NVML_SUCCESS;
}
FN nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *u) {
	ENTER(UTIL);
	if (w(MIG)) return NVML_ERROR_NOT_SUPPORTED;
	if (ctl) ctl[PCIE_IN_A_ROW] = 0;
	u->gpu = 90 + device.handle->index;
	u->memory = 40;
	return NVML_SUCCESS;
}
FN nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *v) { ENTER(POWER); *v = 412345; return NVML_SUCCESS; }
FN nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *v) { ENTER(POWER); *v = 700000; return NVML_SUCCESS; }
FN nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t t, unsigned *v) { ENTER(TEMP); *v = 61; return NVML_SUCCESS; }
FN nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t t, unsigned *v) { ENTER(TEMP); *v = 87; return NVML_SUCCESS; }
FN nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *v) { ENTER(FAN); return NVML_ERROR_NOT_SUPPORTED; }
FN nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t t, unsigned *v) { ENTER(CLOCK); *v = t == NVML_CLOCK_SM ? 1980 : 2619; return NVML_SUCCESS; }
FN nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t t, unsigned *v) { ENTER(CLOCK); *v = t == NVML_CLOCK_SM ? 1980 : 2619; return NVML_SUCCESS; }
FN nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *p) { ENTER(PSTATE); *p = NVML_PSTATE_0; return NVML_SUCCESS; }
FN nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long *m) { ENTER(REASONS); *m = 0x24; return NVML_SUCCESS; }
FN nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *v) { ENTER(GEN); *v = 5; return NVML_SUCCESS; }
FN nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *v) { ENTER(GEN); *v = 16; return NVML_SUCCESS; }
FN nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *v) { ENTER(GEN); *v = 5; return NVML_SUCCESS; }
FN nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned *v) { ENTER(GEN); *v = 16; return NVML_SUCCESS; }
FN nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *n) { ENTER(ECC); *n = t == NVML_MEMORY_ERROR_TYPE_CORRECTED ? 3 : 0; return NVML_SUCCESS; }
FN nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t c, unsigned *v) {
	ENTER(0);
	if (ctl) ctl[PCIE_CALLS]++;
	usleep(20000); /* as the real one blocks */
	*v = 1000;
	return NVML_SUCCESS;
}
FN nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *v, unsigned *us) { ENTER(ENCODER); *v = 7; *us = 1; return NVML_SUCCESS; }
FN nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *v, unsigned *us) { ENTER(ENCODER); *v = 8; *us = 1; return NVML_SUCCESS; }
FN nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *s) {
	ENTER(LINK);
	if (link >= 18) return NVML_ERROR_INVALID_ARGUMENT;
	*s = (int)link < w(LINKS_UP) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}
FN nvmlDeviceGetFieldValues(nvmlDevice_t device, int n, nvmlFieldValue_t *f) {
	static unsigned long long moved;
	ENTER(FIELDS);
	moved += 1 << 20;
	for (int i = 0; i < n; i++) {
		f[i].nvmlReturn = NVML_SUCCESS;
		f[i].value.ullVal = moved;
	}
	return NVML_SUCCESS;
}
FN nvmlEventSetCreate(nvmlEventSet_t *s) { s->handle = &set; return NVML_SUCCESS; }
FN nvmlEventSetFree(nvmlEventSet_t s) { return NVML_SUCCESS; }
FN nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t s) { ENTER(0); return NVML_SUCCESS; }
static nvmlReturn_t wait_event(nvmlEventData_t *e, unsigned ms) {
	if (getenv("STANDIN_QUIET")) { /* as the real one: asleep until something happens */
		usleep(ms * 1000);
		return NVML_ERROR_TIMEOUT;
	}
	for (unsigned t = 0; t < ms; t += 200) {
		if (w(XID_SEQ) != seen) {
			seen = w(XID_SEQ);
			memset(e, 0, sizeof *e);
			e->device.handle = &devs[w(XID_GPU)];
			e->eventType = nvmlEventTypeXidCriticalError;
			e->eventData = w(XID_CODE);
			return NVML_SUCCESS;
		}
		usleep(200000);
	}
	return NVML_ERROR_TIMEOUT;
}
FN nvmlEventSetWait(nvmlEventSet_t s, nvmlEventData_t *e, unsigned ms) { return wait_event(e, ms); }

/* Processes, in the three shapes that drivers have told them in. */
#define LIST(SHAPE, SIZE)                                                      \
	ENTER(PROCESSES);                                                      \
	unsigned have = w(PROCS), from = 0;                                    \
	if (w(ONE_EACH)) have = 1, from = device.handle->index;                \
	if (*n < have) { *n = have; return NVML_ERROR_INSUFFICIENT_SIZE; }     \
	for (unsigned i = 0; i < have; i++) {                                  \
		SHAPE *p = (SHAPE *)((char *)list + i * (SIZE));               \
		p->pid = w(PIDS + from + i);                                   \
		p->usedGpuMemory = 4ull << 30;                                 \
	}                                                                      \
	*n = have;                                                             \
	return NVML_SUCCESS;
FN nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *list) { LIST(nvmlProcessInfo_v1_t, sizeof(nvmlProcessInfo_v1_t)) }
FN nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v1_t *list) { *n = 0; return NVML_SUCCESS; }

#if LEVEL >= 470
FN nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *e, unsigned ms) { return wait_event(e, ms); }
FN nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed) { ENTER(REMAP); *c = 1; *u = 1; *pending = 1; *failed = 0; return NVML_SUCCESS; }
FN nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *now, unsigned *later) { ENTER(0); *now = *later = w(MIG); return NVML_SUCCESS; }
FN nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *n) { ENTER(0); *n = 7; return NVML_SUCCESS; }
FN nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned i, nvmlDevice_t *d) {
	ENTER(0);
	if (i >= 2) return NVML_ERROR_NOT_FOUND;
	parts[device.handle->index][i].index = device.handle->index;
	parts[device.handle->index][i].part = i + 1;
	d->handle = &parts[device.handle->index][i];
	return NVML_SUCCESS;
}
FN nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) { ENTER(0); *id = 6 + device.handle->part; return NVML_SUCCESS; }
FN nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) { ENTER(0); *id = 0; return NVML_SUCCESS; }
FN nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v2_t *list) { LIST(nvmlProcessInfo_v2_t, sizeof(nvmlProcessInfo_v2_t)) }
FN nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_v2_t *list) { *n = 0; return NVML_SUCCESS; }
#endif

#if LEVEL >= 535
FN nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
	ENTER(MEMORY);
	m->total = 80ull << 30;
	m->reserved = 300 << 20;
	m->used = 10ull << 30;
	if (device.handle->part) m->total = 10ull << 30, m->used = 1ull << 30;
	m->free = m->total - m->used - m->reserved;
	return NVML_SUCCESS;
}
FN nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *m) { ENTER(REASONS); *m = 0x24; return NVML_SUCCESS; }
/* 535.43 to 535.86 write rows of 32 bytes under this name: a reader that believes
 * the header runs over the end of its buffer. */
FN nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *list) { LIST(nvmlProcessInfo_t, LEVEL == 535 ? 32 + 4096 : sizeof(nvmlProcessInfo_t)) }
FN nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *n, nvmlProcessInfo_t *list) { *n = 0; return NVML_SUCCESS; }
#endif

#if LEVEL >= 590
FN nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *m) { ENTER(TEMP); m->marginTemperature = 26; return NVML_SUCCESS; }
#endif
