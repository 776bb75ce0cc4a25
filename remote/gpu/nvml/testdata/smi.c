/* A stand-in for nvidia-smi, to measure the reader beside: it is not NVIDIA's. It
 * makes the calls that the table needs, on the stand-in for the driver's library,
 * and prints as many lines. With -l N it goes on each N seconds. */
#include "nvml.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL(name) ((__typeof__(&name))dlsym(lib, #name))

int main(int argc, char **argv) {
	unsigned every = argc > 2 && !strcmp(argv[1], "-l") ? atoi(argv[2]) : 0, n = 0;
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
	if (!lib || CALL(nvmlInit_v2)()) return 9;
	char driver[80], name[96];
	do {
		time_t now = time(0);
		CALL(nvmlSystemGetDriverVersion)(driver, sizeof driver);
		CALL(nvmlDeviceGetCount_v2)(&n);
		printf("%sNVIDIA-SMI (a stand-in)  Driver Version: %s\n", ctime(&now), driver);
		for (unsigned i = 0; i < n; i++) {
			nvmlDevice_t d;
			nvmlPciInfo_t pci;
			nvmlMemory_v2_t mem = {0};
			nvmlUtilization_t use = {0};
			nvmlProcessInfo_t list[64];
			nvmlPstates_t state = 0;
			unsigned temp = 0, power = 0, limit = 0, fan = 0, mig = 0, later = 0, procs = 64, drawn = 64;
			unsigned long long ecc = 0;
			CALL(nvmlDeviceGetHandleByIndex_v2)(i, &d);
			CALL(nvmlDeviceGetName)(d, name, sizeof name);
			CALL(nvmlDeviceGetPciInfo_v3)(d, &pci);
			CALL(nvmlDeviceGetFanSpeed)(d, &fan);
			CALL(nvmlDeviceGetTemperature)(d, NVML_TEMPERATURE_GPU, &temp);
			CALL(nvmlDeviceGetPerformanceState)(d, &state);
			CALL(nvmlDeviceGetPowerUsage)(d, &power);
			CALL(nvmlDeviceGetEnforcedPowerLimit)(d, &limit);
			CALL(nvmlDeviceGetMemoryInfo_v2)(d, &mem);
			CALL(nvmlDeviceGetUtilizationRates)(d, &use);
			CALL(nvmlDeviceGetTotalEccErrors)(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &ecc);
			CALL(nvmlDeviceGetMigMode)(d, &mig, &later);
			CALL(nvmlDeviceGetComputeRunningProcesses_v3)(d, &procs, list);
			CALL(nvmlDeviceGetGraphicsRunningProcesses_v3)(d, &drawn, list);
			printf("| %3u %-30s | %s | %llu |\n| %3u%% %3uC P%u %5uW / %5uW | %8lluMiB / %8lluMiB | %3u%% %u |\n| %u %u |\n", i, name, pci.busId, ecc, fan, temp, state,
			       power / 1000, limit / 1000, mem.used >> 20, mem.total >> 20, use.gpu, mig, procs, drawn);
		}
		fflush(stdout);
		if (every) sleep(every);
	} while (every);
	return 0;
}
