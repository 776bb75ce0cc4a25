//go:build unix

package demo

import (
	"fmt"
	"strings"
	"time"
)

// card is one kind of simulated GPU. Memory in MiB, watts, °C, MHz.
type card struct {
	name            string
	total, reserved int
	idleW, maxW     int
	idleT, maxT     int
	sm, mem         int
	fan             string // percent at idle; "-": none
	gen             int
	ecc             bool
	driver          string
	hot             bool // its cooling fails: it throttles under load
}

var (
	a100    = card{"NVIDIA A100-SXM4-80GB", 81920, 540, 62, 400, 33, 66, 1410, 1593, "-", 4, true, "550.90.07", false}
	rtx4090 = card{"NVIDIA GeForce RTX 4090", 24564, 340, 18, 450, 36, 72, 2520, 10501, "30", 4, false, "550.127.05", false}
	h20     = card{"NVIDIA H20", 97871, 580, 74, 500, 35, 64, 1980, 2619, "-", 5, true, "580.95.05", false}
	h100hot = card{"NVIDIA H100 80GB HBM3", 81559, 479, 70, 700, 41, 89, 1980, 2619, "-", 5, true, "590.48.01", true}
	rtx3090 = card{"NVIDIA GeForce RTX 3090", 24576, 310, 24, 350, 38, 74, 1950, 9751, "35", 4, false, "560.35.03", false}
)

// spec is an instance's character.
type spec struct {
	name         string
	gpu          string // as a person calls it
	card         card
	cards        int
	rate         string
	currency     string
	whileStopped string
	diskGB       int
	perGBMonth   string
	age          time.Duration // how long it runs already
	stopped      bool
	artifacts    []string
	jobs         []Job
	seed         func(*folder)
}

func specs() []spec {
	return []spec{
		{name: "a100-tune", gpu: "1×A100 80G", card: a100, cards: 1, rate: "8.00", currency: "CNY", whileStopped: "0.02",
			diskGB: 100, perGBMonth: "0.35", age: 3*time.Hour + 12*time.Minute, seed: seedTune,
			artifacts: []string{"~/ckpt/**"},
			jobs:      []Job{{Name: "lora-7b", Command: "train lora-7b 0 72900 97 ~/ckpt", Dir: "~/project"}}},
		{name: "4090-data", gpu: "2×RTX 4090", card: rtx4090, cards: 2, rate: "4.98", currency: "CNY", whileStopped: "0.02",
			diskGB: 50, perGBMonth: "0.35", age: 74 * time.Minute, seed: seedData},
		{name: "h20-infer", gpu: "1×H20 96G", card: h20, cards: 1, rate: "6.98", currency: "CNY", whileStopped: "0.02",
			diskGB: 60, perGBMonth: "0.35", stopped: true, seed: seedInfer},
		{name: "h100-hot", gpu: "8×H100 80G", card: h100hot, cards: 8, rate: "19.92", currency: "USD", whileStopped: "0.08",
			diskGB: 500, perGBMonth: "0.10", age: 26*time.Hour + 40*time.Minute, seed: seedHot,
			artifacts: []string{"~/runs/**"},
			jobs:      []Job{{Name: "pretrain", Command: "train pretrain 0,1,2,3,4,5,6,7 79100 99 ~/runs", Dir: "~"}}},
		{name: "cn-box", gpu: "1×RTX 3090", card: rtx3090, cards: 1, rate: "1.66", currency: "CNY", whileStopped: "0.01",
			diskGB: 30, perGBMonth: "0.35", age: 41 * time.Minute, seed: seedChinese,
			artifacts: []string{"~/实验/输出/**"},
			jobs:      []Job{{Name: "微调-问答", Command: "train 微调-问答 0 18300 88 ~/实验/输出", Dir: "~/实验"}}},
	}
}

// table is the machine's GPUs in the form that box/smi.awk reads.
func (s spec) table(n int) string {
	var b strings.Builder
	c := s.card
	ecc, hot := "off", ""
	if c.ecc {
		ecc = "on"
	}
	if c.hot {
		hot = "hot"
	}
	for i := range s.cards {
		fmt.Fprintf(&b, "%d\tGPU-de300000-0000-4000-8000-%06d%06d\t00000000:%02X:00.0\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%s\t%s\t%s\t%s\n",
			i, n, i, 0x10+i*8, c.total, c.reserved, c.idleW, c.maxW, c.idleT+i%3, c.maxT, c.sm, c.mem, c.fan, c.gen, ecc, c.driver, c.name, hot)
	}
	return b.String()
}
