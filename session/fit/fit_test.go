package fit

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func estimate(t *testing.T, a Ask) Need {
	t.Helper()
	n, err := Estimate(a)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func part(t *testing.T, n Need, name string) Part {
	t.Helper()
	i := slices.IndexFunc(n.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no part %q in %+v", name, n.Parts)
	}
	return n.Parts[i]
}

// TestGuides holds the answers against the figures of the renters' guides.
func TestGuides(t *testing.T) {
	n := estimate(t, Ask{Model: "7B", Use: Infer})
	if w := part(t, n, "weights"); GB(w.Low) != 14 || GB(w.High) != 14 { // 7B ≈ 14 GB
		t.Errorf("weights %+v", w)
	}
	if GB(n.Low) < 16.8 || GB(n.High) > 20 { // ×1.2, and 20 GB are planned for
		t.Errorf("inference of 7B needs %v to %v GB", GB(n.Low), GB(n.High))
	}
	full := estimate(t, Ask{Model: "1B", Use: Full, Context: 512, Batch: 8, Shape: Shape{"", 0, 16, 2048, 32, 8, 8192, 128256}})
	states := part(t, full, "weights").Low + part(t, full, "gradients").Low + part(t, full, "Adam").Low
	if GB(states) != 12 { // 2 + 2 + 8
		t.Errorf("1B: the states are %v GB", GB(states))
	}
	if acts := part(t, full, "activations"); GB(acts.Low) > 4 || GB(acts.High) < 4 { // and 4 to 8 more
		t.Errorf("1B: activations %+v", acts)
	}
	l := estimate(t, Ask{Model: "7B", Use: LoRA})
	if GB(l.Low) > 24 || GB(l.Low) < 15 || GB(l.High) < 40 || GB(l.High) > 60 { // 20+, 24 or 48 GB cards, 40 to 60 planned
		t.Errorf("LoRA of 7B needs %v to %v GB", GB(l.Low), GB(l.High))
	}
	if f := estimate(t, Ask{Model: "7B", Use: Full}); GB(f.Low) < 84 { // ×6 at least
		t.Errorf("training of 7B needs %v GB", GB(f.Low))
	}
}

func TestFormulas(t *testing.T) {
	kv := part(t, estimate(t, Ask{Model: "llama-2-7b", Use: Infer, Context: 4096, Batch: 2}), "KV cache")
	if kv.Low != 2*32*32*128*4096*2*2 || kv.High != kv.Low {
		t.Errorf("KV cache %+v", kv)
	}
	gqa := part(t, estimate(t, Ask{Model: "llama-3-8b", Use: Infer}), "KV cache")
	if gqa.Low != 2*32*8*128*4096*2 {
		t.Errorf("KV cache of grouped heads %+v", gqa)
	}
	if q := part(t, estimate(t, Ask{Model: "7B", Use: LoRA, Bits: 4}), "weights"); q.Low != 7e9*4.5/8 {
		t.Errorf("4 bits %+v", q)
	}
	full := estimate(t, Ask{Model: "llama-2-7b", Use: Full, Context: 2048})
	if a := part(t, full, "activations"); a.High != 34*32*2048*4096 || a.Low != 2048*4096*(2*32+34) {
		t.Errorf("activations %+v", a)
	}
	if ad := part(t, full, "Adam"); ad.Low != 8*6.738e9 || ad.High != 12*6.738e9 {
		t.Errorf("Adam %+v", ad)
	}
	sum := 0.0
	for _, p := range full.Parts {
		sum += p.High
		if p.Formula == "" || p.Source == "" || p.Low > p.High {
			t.Errorf("%+v", p)
		}
	}
	if math.Abs(sum-full.High) > 1 {
		t.Error("the parts do not add up")
	}
}

func TestUnknownShape(t *testing.T) {
	n := estimate(t, Ask{Model: "400B", Use: Infer})
	if kv := part(t, n, "KV cache"); !n.AtLeast || kv.Unknown == "" || kv.High != 0 || len(n.Shapes) != 0 {
		t.Errorf("%+v", n)
	}
	if v := n.On(Card{"big", 1e13}, 1); v != Open {
		t.Errorf("a part is not known, and it is %q", v)
	}
	if v := n.On(Card{"small", 1e9}, 8); v != Short {
		t.Errorf("the weights alone do not fit, and it is %q", v)
	}
	if n := estimate(t, Ask{Model: "7B", Use: Infer}); len(n.Shapes) != 3 {
		t.Errorf("7B may be %+v", n.Shapes)
	}
}

func TestChoose(t *testing.T) {
	find := func(n Need, card string) Choice {
		for _, c := range n.Choose(Cards) {
			if c.Name == card {
				return c
			}
		}
		t.Fatalf("no %s", card)
		return Choice{}
	}
	seven := estimate(t, Ask{Model: "7B", Use: Infer})
	if c := find(seven, "RTX 4090"); c.Count != 1 || c.Verdict != Enough {
		t.Errorf("%+v", c)
	}
	if c := find(seven, "T4"); c.Count != 2 || c.Verdict != Enough {
		t.Errorf("%+v", c)
	}
	if c := find(estimate(t, Ask{Model: "7B", Use: Full, Context: 2048}), "A100 80G"); c.Count != 4 || c.Verdict != Enough {
		t.Errorf("%+v", c)
	}
	if c := find(estimate(t, Ask{Model: "405B", Use: Full}), "T4"); c.Verdict != Short {
		t.Errorf("%+v", c)
	}
	for i := 1; i < len(Cards); i++ {
		if Cards[i].Bytes < Cards[i-1].Bytes {
			t.Errorf("%s is out of order", Cards[i].Name)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, tt := range []struct {
		ask  Ask
		tell string
	}{
		{Ask{Model: "", Use: Infer}, "neither a size"}, {Ask{Model: "big", Use: Infer}, "neither a size"}, {Ask{Model: "-7B", Use: Infer}, "neither a size"},
		{Ask{Model: "1e9B", Use: Infer}, "neither a size"}, {Ask{Model: "0B", Use: Infer}, "neither a size"}, {Ask{Model: "999999999B", Use: Infer}, "neither a size"},
		{Ask{Model: "7B", Use: "sell"}, "is no use"}, {Ask{Model: "7B", Use: Infer, Bits: 3}, "16, 8 or 4"}, {Ask{Model: "7B", Use: Full, Bits: 4}, "in 16 bits"},
		{Ask{Model: "7B", Use: Infer, Context: -1}, "1 or more"}, {Ask{Model: "7B", Use: Infer, Shape: Shape{Layers: 3}}, "shape needs all"},
		{Ask{Model: "7B", Use: Infer, Shape: Shape{"", 0, 1, 100, 3, 1, 1, 1}}, "multiple"},
	} {
		if n, err := Estimate(tt.ask); err == nil || !strings.Contains(err.Error(), tt.tell) {
			t.Errorf("%+v: %+v, %v", tt.ask, n, err)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("7B", "full", 4096, 8, 16, 16)
	f.Add("qwen2.5-7b", "lora", 1, 1, 4, 1)
	f.Add("bbb", "infer", 0, 0, 0, 0)
	f.Fuzz(func(t *testing.T, model, use string, ctx, batch, bits, rank int) {
		n, err := Estimate(Ask{Model: model, Use: Use(use), Context: ctx, Batch: batch, Bits: bits, Rank: rank})
		if err == nil && (!(n.Low > 0) || !(n.High >= n.Low)) {
			t.Errorf("%+v", n)
		}
	})
}
