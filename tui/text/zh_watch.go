package text

// chineseWatch is what the Chinese catalogue says of recordings.
func chineseWatch() map[string]string {
	return map[string]string{
		"replay":             "回放",
		"replay.paused":      "已暂停",
		"replay.end":         "结束",
		"why.replay":         "这是回放：只能查看",
		"act.play":           "暂停",
		"act.play.help":      "暂停或继续回放；在结尾处重新开始",
		"act.seekback":       "−10 秒",
		"act.seekback.help":  "后退 10 秒",
		"act.seekahead":      "+10 秒",
		"act.seekahead.help": "前进 10 秒",
		"act.leapback":       "−5 分",
		"act.leapback.help":  "后退 5 分钟",
		"act.leapahead":      "+5 分",
		"act.leapahead.help": "前进 5 分钟",
		"act.faster":         "加快",
		"act.faster.help":    "速度加倍，最高 256 倍",
		"act.slower":         "减慢",
		"act.slower.help":    "速度减半，最低为原速",
	}
}
