package text

// englishMoney is what the English catalogue says of use and money.
func englishMoney() map[string]string {
	return map[string]string{
		"job.used":            "used",
		"used.hours":          "%s GPU·h",
		"used.util":           "%s mean, %s peak",
		"used.mem":            "%s a GPU at most",
		"used.energy":         "%s kWh",
		"used.cost":           "cost %s",
		"used.partly":         "%s of the time watched",
		"used.none":           "nobody watched",
		"act.byprovider":      "by provider",
		"act.byprovider.help": "Group by provider",
		"act.bytag":           "by tag",
		"act.bytag.help":      "Group by the tags of the config; an instance with several counts in each",
		"group.provider":      "provider",
		"group.tag":           "tag",
		"group.ssh":           "plain SSH",
		"group.untagged":      "(no tag)",
		"part.compute":        "computing",
		"part.stopped":        "stopped",
		"part.disk":           "disks",
		"part.other":          "the rest",
		"part.traffic":        "traffic",
		"part.left":           "left behind",

		// the report
		"bill.title":     "What the GPUs cost",
		"bill.made":      "from %s to %s",
		"bill.beginning": "the beginning",
		"bill.foot":      "Amounts are exact and rounded once. ? is not known, > is at least. Made by rentop from its ledger.",
		"bill.total":     "total %s",
		"bill.month":     "this month so far %s",
		"bill.month.end": "this month by its end, if all stays as it is, %s",
		"bill.cost":      "cost",
		"bill.by":        "By %s",
		"bill.by.in":     "By %s, %s",
		"costs.month":    "this month %s so far, %s by its end if all stays as it is",
	}
}
