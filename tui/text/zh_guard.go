package text

// chineseGuard is what the Chinese catalogue says of guards.
func chineseGuard() map[string]string {
	return map[string]string{
		"act.guard":         "守护",
		"act.guard.help":    "在实例上留下规则，没有人连接时也会关机",
		"act.guardoff":      "关闭守护",
		"act.guardoff.help": "结束实例上的守护",
		"guard.title":       "守护 %s",
		"guard.intro":       "守护留在实例上，以下任一条先满足就执行，合上电脑也一样。只填你要的。",
		"guard.idle":        "空闲满",
		"guard.after":       "任务结束后",
		"guard.at":          "到时间",
		"guard.budget":      "花费达到",
		"guard.then":        "随后",
		"guard.then.ghost":  "stop（关机），或那里的一条命令",
		"guard.save":        "但先在那里执行",
		"guard.badidle":     "空闲要写时长，例如 20m。",
		"guard.badat":       "时间例如 23:30、2h 或 2026-12-01 08:00。",
		"guard.need":        "请说明何时：前四项至少填一项。",
		"guard.armed":       "%s：守护已启用，已从实例读回确认",
		"guard.isoff":       "%s：守护已关闭",
		"guard.word.on":     "守护已启用",
		"guard.word.off":    "守护未启用",
		"guard.seen":        "%s 前读回",
		"gpu.day":           "最近 %s",
		"form.arm":          "启用",
		"why.noguard":       "%s 没有守护",
	}
}
