package sample

import (
	"fmt"
	"strconv"
	"strings"
)

// reasons are the bits of clocks_event_reasons.active (nvml.h,
// nvmlClocksEventReasons). Idle and application clocks are no throttling; a power
// cap is normal at full load; hot ones ask for attention.
var reasons = []struct {
	bit  uint64
	word string // "" is not shown
	hot  bool
}{
	{0x1, "", false}, // idle
	{0x2, "", false}, // clocks set by the person
	{0x4, "power cap", false},
	{0x8, "hardware slowdown", true},
	{0x10, "sync boost", false},
	{0x20, "too hot (driver)", true},
	{0x40, "too hot (hardware)", true},
	{0x80, "power brake", true},
	{0x100, "display clocks", false},
}

// Throttle puts a bit mask ("0x0000000000000024") into words. Where the mask cannot
// be read it says nothing.
func Throttle(cell string) (words []string, hot bool) {
	hex, ok := strings.CutPrefix(strings.TrimSpace(cell), "0x")
	if !ok {
		return nil, false
	}
	mask, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		return nil, false
	}
	return ThrottleMask(mask)
}

// ThrottleMask puts the bits into words.
func ThrottleMask(mask uint64) (words []string, hot bool) {
	for _, r := range reasons {
		if mask&r.bit == 0 {
			continue
		}
		mask &^= r.bit
		hot = hot || r.hot
		if r.word != "" {
			words = append(words, r.word)
		}
	}
	if mask != 0 {
		words = append(words, fmt.Sprintf("reason 0x%x", mask))
	}
	return words, hot
}
