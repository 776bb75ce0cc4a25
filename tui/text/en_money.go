package text

// englishMoney is what the English catalogue says of use and money.
func englishMoney() map[string]string {
	return map[string]string{
		"job.used":    "used",
		"used.hours":  "%s GPU·h",
		"used.util":   "%s mean, %s peak",
		"used.mem":    "%s a GPU at most",
		"used.energy": "%s kWh",
		"used.cost":   "cost %s",
		"used.partly": "%s of the time watched",
		"used.none":   "nobody watched",
	}
}
