package text

// englishGuard is what the English catalogue says of guards.
func englishGuard() map[string]string {
	return map[string]string{
		"act.guard":         "guard",
		"act.guard.help":    "Leave rules on the instance that stop it while nobody is connected",
		"act.guardoff":      "guard off",
		"act.guardoff.help": "End the guard on the instance",
		"guard.title":       "Guard %s",
		"guard.intro":       "A guard stays on the instance and acts when the first of these is met, also with your laptop closed. Fill in what you want.",
		"guard.idle":        "idle for",
		"guard.after":       "after the job",
		"guard.at":          "at",
		"guard.budget":      "when it has cost",
		"guard.then":        "then",
		"guard.then.ghost":  "stop (or a command there)",
		"guard.save":        "but first run there",
		"guard.badidle":     "Idle is a time such as 20m.",
		"guard.badat":       "The time is such as 23:30, 2h or 2026-12-01 08:00.",
		"guard.need":        "Say when: fill in at least one of the first four.",
		"guard.armed":       "%s: the guard is armed, read back from the instance",
		"guard.isoff":       "%s: the guard is off",
		"guard.word.on":     "guard armed",
		"guard.word.off":    "guard not armed",
		"guard.seen":        "read back %s ago",
		"gpu.day":           "the last %s",
		"form.arm":          "arm",
		"why.noguard":       "%s has no guard",
	}
}
