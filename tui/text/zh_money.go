package text

// chineseMoney is what the Chinese catalogue says of use and money.
func chineseMoney() map[string]string {
	return map[string]string{
		"job.used":            "用量",
		"used.hours":          "%s GPU·时",
		"used.util":           "平均 %s，峰值 %s",
		"used.mem":            "单卡显存最高 %s",
		"used.energy":         "%s kWh",
		"used.cost":           "费用 %s",
		"used.partly":         "仅观测到 %s 的时间",
		"used.none":           "期间无人观测",
		"act.byprovider":      "按平台",
		"act.byprovider.help": "按平台汇总",
		"act.bytag":           "按标签",
		"act.bytag.help":      "按配置中的标签汇总；有多个标签的实例在每个标签下都计入",
		"group.provider":      "平台",
		"group.tag":           "标签",
		"group.ssh":           "普通 SSH",
		"group.untagged":      "（无标签）",
		"part.compute":        "算力",
		"part.stopped":        "停机",
		"part.disk":           "磁盘",
		"part.other":          "其他",
		"part.traffic":        "流量",
		"part.left":           "遗留资源",

		"bill.title":     "GPU 花费",
		"bill.made":      "%s 至 %s",
		"bill.beginning": "最初",
		"bill.foot":      "金额精确计算，只舍入一次。? 是未知，> 是至少。由 rentop 根据账本生成。",
		"bill.total":     "合计 %s",
		"bill.month":     "本月至今 %s",
		"bill.month.end": "若一切照旧，本月到月底 %s",
		"bill.cost":      "费用",
		"bill.by":        "按%s",
		"bill.by.in":     "按%s，%s",
		"costs.month":    "本月至今 %s，若一切照旧到月底 %s",
	}
}
