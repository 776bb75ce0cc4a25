package text

// englishWatch is what the English catalogue says of recordings.
func englishWatch() map[string]string {
	return map[string]string{
		"replay":             "replay",
		"replay.paused":      "paused",
		"replay.end":         "end",
		"why.replay":         "this is a replay: one can only look",
		"act.play":           "pause",
		"act.play.help":      "Pause the replay, go on, or begin anew at its end",
		"act.seekback":       "−10 s",
		"act.seekback.help":  "Go back by 10 seconds",
		"act.seekahead":      "+10 s",
		"act.seekahead.help": "Go ahead by 10 seconds",
		"act.leapback":       "−5 min",
		"act.leapback.help":  "Go back by 5 minutes",
		"act.leapahead":      "+5 min",
		"act.leapahead.help": "Go ahead by 5 minutes",
		"act.faster":         "faster",
		"act.faster.help":    "Play twice as fast, up to 256 times",
		"act.slower":         "slower",
		"act.slower.help":    "Play half as fast, down to the time that it took",
	}
}
