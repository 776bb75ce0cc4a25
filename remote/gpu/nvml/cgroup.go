//go:build linux

package nvml

import (
	"strconv"
	"strings"
)

// cgroup reads what the container may use, and uses.
type cgroup struct {
	turn                 int
	version              int // 0: none
	limit, quota, period string
}

// limitsEvery is after how many readings the limits are read again: they change
// seldom.
const limitsEvery = 10

const cgroupRoot = "/sys/fs/cgroup/"

// read is "limit,current,inactive,quota,period,usage" of cgroup v2, or v1.
func (c *cgroup) read(k *kernelFiles) string {
	if c.turn%limitsEvery == 0 {
		c.limits(k)
	}
	c.turn++
	var cur, ina, use string
	bounded := c.limit != "" && c.limit != "max" && !hugeNumber(c.limit)
	switch c.version {
	case 2:
		if bounded { // memory.stat has the kernel add up every CPU's counts
			cur, ina = k.one(cgroupRoot+"memory.current"), k.keyed(cgroupRoot+"memory.stat", "inactive_file")
		}
		use = k.keyed(cgroupRoot+"cpu.stat", "usage_usec")
	case 1:
		if bounded {
			cur, ina = k.one(cgroupRoot+"memory/memory.usage_in_bytes"), k.keyed(cgroupRoot+"memory/memory.stat", "total_inactive_file")
		}
		if use = k.one(cgroupRoot + "cpuacct/cpuacct.usage"); len(use) > 3 {
			use = use[:len(use)-3] // nanoseconds
		}
	}
	return strings.Join([]string{c.limit, cur, ina, c.quota, c.period, use}, ",")
}

// limits finds the version and reads its limits.
func (c *cgroup) limits(k *kernelFiles) {
	switch {
	case k.has(cgroupRoot+"memory.max") || k.has(cgroupRoot+"cpu.max"):
		c.version = 2
		c.limit = k.one(cgroupRoot + "memory.max")
		c.quota, c.period, _ = strings.Cut(k.one(cgroupRoot+"cpu.max"), " ")
	case k.has(cgroupRoot + "memory/memory.limit_in_bytes"):
		c.version = 1
		c.limit = k.one(cgroupRoot + "memory/memory.limit_in_bytes")
		c.quota, c.period = k.one(cgroupRoot+"cpu/cpu.cfs_quota_us"), k.one(cgroupRoot+"cpu/cpu.cfs_period_us")
	default:
		c.version = 0
	}
}

// hugeNumber says whether v1 writes "no limit" so: as a number of pages that no
// machine has.
func hugeNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err != nil || n >= 1<<60
}
