package text

// chineseMoney is what the Chinese catalogue says of use and money.
func chineseMoney() map[string]string {
	return map[string]string{
		"job.used":    "用量",
		"used.hours":  "%s GPU·时",
		"used.util":   "平均 %s，峰值 %s",
		"used.mem":    "单卡显存最高 %s",
		"used.energy": "%s kWh",
		"used.cost":   "费用 %s",
		"used.partly": "仅观测到 %s 的时间",
		"used.none":   "期间无人观测",
	}
}
