package sample

// The cells of nvidia-smi's CSV: a number with its unit, or one of the words that
// the tool prints in its place. The words were collected from recorded outputs of
// drivers 325 to 610.

import (
	"math"
	"strconv"
	"strings"

	"rentop/remote/clean"
)

// absent are the words for "the device or driver does not have it", lower case,
// without brackets.
var absent = []string{
	"n/a", "not supported", "not found", "insufficient permissions", "not available", "-", "none",
	"requested functionality has been deprecated",
}

// failed are the words for "reading it failed".
var failed = []string{"err!", "error", "unknown error", "gpu requires reset", "gpu is lost", "unknown", "timeout"}

// Why keeps the tool's own word, bounded.
func Why(cell string) string { return clean.Short(cell, 80) }

// Sentinel returns the Value that a cell's word stands for, and whether it is one.
func Sentinel(cell string) (Value, bool) {
	w := strings.ToLower(strings.Trim(cell, "[] "))
	if w == "" {
		return Value{Why: "empty"}, true
	}
	for _, a := range absent {
		if w == a {
			return Value{Why: Why(cell)}, true
		}
	}
	for _, f := range failed {
		if w == f {
			return Value{State: Failed, Why: Why(cell)}, true
		}
	}
	if strings.HasPrefix(cell, "[") && strings.HasSuffix(cell, "]") {
		return Value{State: Failed, Why: Why(cell)}, true // a word that we have not met
	}
	return Value{}, false
}

// units that a cell may carry, with the factor to ours.
var units = map[string]float64{
	"": 1, "%": 1, "W": 1, "C": 1, "MHz": 1, "us": 1,
	"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "MB": 1 << 20, "kB": 1 << 10,
}

// Number reads "72.00 W", "40960 MiB", "33": bare scales a number that carries no
// unit. Outside lo … hi (in our units) the driver's garbage is a failed reading,
// never a value: a blank is 9223372036854775794 to some drivers.
func Number(cell string, bare, lo, hi float64) Value {
	cell = strings.TrimSpace(cell)
	if v, ok := Sentinel(cell); ok {
		return v
	}
	digits, unit, _ := strings.Cut(cell, " ")
	f, err := strconv.ParseFloat(digits, 64)
	scale, known := units[strings.TrimSpace(unit)]
	if err != nil || !known || math.IsNaN(f) || math.IsInf(f, 0) || !plainNumber(digits) {
		return Value{State: Failed, Why: "unreadable: " + Why(cell)}
	}
	if unit == "" {
		scale = bare
	}
	if f *= scale; f < lo || f > hi {
		return Value{State: Failed, Why: "implausible: " + Why(cell)}
	}
	return Of(f)
}

// plainNumber refuses what ParseFloat takes beyond decimal digits (hex, underscores, "nan").
func plainNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.+-") == ""
}

// Percent clamps what some drivers report a little above 100 (DCGM#152) and
// refuses the absurd.
func Percent(cell string) Value {
	v := Number(cell, 1, 0, 1000)
	if v.State == OK {
		v.V = min(v.V, 100)
	}
	return v
}

const maxBytes = 1 << 50

func Mebibytes(cell string) Value { return Number(cell, 1<<20, 0, maxBytes) }
func Watts(cell string) Value     { return Number(cell, 1, 0, 100_000) }
func Celsius(cell string) Value   { return Number(cell, 1, -100, 250) }
func Megahertz(cell string) Value { return Number(cell, 1, 0, 1_000_000) }
func Count(cell string) Value     { return Number(cell, 1, 0, 1<<53) }

// Word is a cell of text: "" for a sentinel.
func Word(cell string, n int) string {
	cell = strings.TrimSpace(cell)
	if _, ok := Sentinel(cell); ok {
		return ""
	}
	return clean.Short(cell, n)
}

// AtMost bounds what a driver tells.
func AtMost(v Value, highest float64) Value {
	if v.State == OK {
		v.V = min(v.V, highest)
	}
	return v
}

// Within is what is used of a total.
func Within(used, total Value) Value {
	if total.State != OK {
		return used
	}
	return AtMost(used, total.V)
}
