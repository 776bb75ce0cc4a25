// Package fit says how much GPU memory a language model needs to run or to be
// trained, and which cards have it. It is pure.
//
// Each part is a range with the formula behind it and where that comes from. A part
// that depends on what is not known (the shape of a model of which only the size is
// told) has no figures, and the sum is then "at least".
package fit

import (
	"errors"
	"fmt"
	"math"
)

// Use is what the model is for.
type Use string

const (
	Infer Use = "infer"
	LoRA  Use = "lora"
	Full  Use = "full"
)

// Ask is a model and what is to be done with it.
type Ask struct {
	Model   string // "7B", "0.5b", "llama-2-7b"
	Use     Use
	Context int   // tokens; 0: 4096
	Batch   int   // sequences at once on one card; 0: 1
	Bits    int   // of a weight that is not trained: 16, 8 or 4; 0: 16
	Rank    int   // of the adapters of LoRA; 0: 16
	Shape   Shape // of a model that is not in the list; zero: not known
}

// Part is one use of memory, in bytes. Its low and high are equal where the formula
// gives one figure.
type Part struct {
	Name      string
	Low, High float64
	Unknown   string // what it depends on and nobody told; "" where Low and High are known
	Formula   string
	Source    string
	Shared    bool // several cards share it; else each holds all of it
}

// Need is the answer.
type Need struct {
	Params  float64 // as the name says, or of the model in the list
	Shapes  []Shape // that the figures range over; empty: the shape is not known
	Parts   []Part
	Low     float64 // the sum, for one card
	High    float64
	AtLeast bool // a part is not known
}

// Where the formulas come from.
const (
	zero     = "Rajbhandari et al. 2020, ZeRO, §3.1"
	korthi   = "Korthikanti et al. 2022, Reducing Activation Recomputation, §4"
	kvSource = "Pope et al. 2022, Efficiently Scaling Transformer Inference, §3.3"
	lora     = "Hu et al. 2021, LoRA"
	qlora    = "Dettmers et al. 2023, QLoRA, §3"
	guides   = "renters' guides"
)

const (
	maxTokens = 1 << 24
	maxBatch  = 1 << 16
	maxRank   = 1 << 12
)

// Estimate adds up what the model needs.
func Estimate(a Ask) (Need, error) {
	if a.Context == 0 {
		a.Context = 4096
	}
	if a.Batch == 0 {
		a.Batch = 1
	}
	if a.Bits == 0 {
		a.Bits = 16
	}
	if a.Rank == 0 {
		a.Rank = 16
	}
	switch {
	case a.Context < 1 || a.Context > maxTokens || a.Batch < 1 || a.Batch > maxBatch || a.Rank < 1 || a.Rank > maxRank:
		return Need{}, errors.New("a context, a batch and a rank are 1 or more, and not beyond all measure")
	case a.Bits != 16 && a.Bits != 8 && a.Bits != 4:
		return Need{}, fmt.Errorf("weights of %d bits are not known here: use 16, 8 or 4", a.Bits)
	case a.Use == Full && a.Bits != 16:
		return Need{}, errors.New("all weights are trained in 16 bits: --bits goes with --lora and --infer")
	}
	params, shapes, err := find(a.Model, a.Shape)
	if err != nil {
		return Need{}, err
	}
	n := Need{Params: params, Shapes: shapes}
	switch a.Use {
	case Infer:
		n.infer(a)
	case LoRA:
		n.lora(a)
	case Full:
		n.full(a)
	default:
		return Need{}, fmt.Errorf("%q is no use: infer, lora or full", a.Use)
	}
	for _, p := range n.Parts {
		n.Low, n.High = n.Low+p.Low, n.High+p.High
		n.AtLeast = n.AtLeast || p.Unknown != ""
	}
	if math.IsInf(n.High, 0) || math.IsNaN(n.High) {
		return Need{}, errors.New("that is more memory than can be counted")
	}
	return n, nil
}

// over gives the range of a formula over the shapes that the model may have.
func (n *Need) over(p Part, f func(Shape) (low, high float64)) {
	if len(n.Shapes) == 0 {
		p.Unknown = "the model's shape: layers, hidden size, heads"
		n.Parts = append(n.Parts, p)
		return
	}
	p.Low = math.Inf(1)
	for _, s := range n.Shapes {
		low, high := f(s)
		p.Low, p.High = min(p.Low, low), max(p.High, high)
	}
	n.Parts = append(n.Parts, p)
}

func (n *Need) add(name string, low, high float64, shared bool, formula, source string) {
	n.Parts = append(n.Parts, Part{Name: name, Low: low, High: high, Shared: shared, Formula: formula, Source: source})
}

// weights that are not trained.
func (n *Need) weights(bits int) float64 {
	per, formula, source := float64(bits)/8, fmt.Sprintf("parameters × %d bits", bits), guides
	if bits == 4 {
		// A scale of 32 bits for each 64 weights; double quantisation saves some of it.
		per, formula, source = 4.5/8, "parameters × 4.5 bits (scales of blocks of 64)", qlora
	}
	n.add("weights", n.Params*per, n.Params*per, true, formula, source)
	return n.Params * per
}

func (n *Need) infer(a Ask) {
	w := n.weights(a.Bits)
	n.over(Part{Name: "KV cache", Shared: true, Formula: "2 × layers × KV heads × head size × context × batch × 2 bytes", Source: kvSource}, func(s Shape) (float64, float64) {
		b := 2 * float64(s.Layers) * float64(s.KVHeads) * float64(s.headSize()) * float64(a.Context) * float64(a.Batch) * 2
		return b, b
	})
	n.add("runtime", 0.2*w, 0.2*w, true, "weights × 0.2", guides)
}

func (n *Need) full(a Ask) {
	p := n.Params
	n.add("weights", 2*p, 2*p, true, "parameters × 2 bytes", zero)
	n.add("gradients", 2*p, 2*p, true, "parameters × 2 bytes", zero)
	n.add("Adam", 8*p, 12*p, true, "parameters × 8 bytes, 12 with weights kept in 32 bits, too", zero)
	n.activations(a)
	n.margin()
}

func (n *Need) lora(a Ask) {
	n.weights(a.Bits)
	n.over(Part{Name: "adapters", Shared: true, Formula: fmt.Sprintf("16 bytes × rank %d × (in + out of each matrix)", a.Rank), Source: lora}, func(s Shape) (float64, float64) {
		h, kv, f := float64(s.Hidden), float64(s.KVHeads*s.headSize()), float64(s.FFN)
		low := 16 * float64(a.Rank) * float64(s.Layers) * (2*h + h + kv) // query and value alone, as the paper has it
		high := 16 * float64(a.Rank) * float64(s.Layers) * (2*2*h + 2*(h+kv) + 3*(h+f))
		return low, high
	})
	n.activations(a)
	n.margin()
}

// activations range from all of them computed again to none but attention's.
func (n *Need) activations(a Ask) {
	sb := float64(a.Context) * float64(a.Batch)
	n.over(Part{Name: "activations", Formula: "tokens × hidden × (2 × layers + 34) bytes with checkpointing, 34 × layers without", Source: korthi}, func(s Shape) (float64, float64) {
		h, l := float64(s.Hidden), float64(s.Layers)
		return sb * h * (2*l + 34), sb * h * 34 * l
	})
	n.over(Part{Name: "logits", Formula: "0 with a fused loss, else tokens × vocabulary × (2 + 4) bytes", Source: "16-bit logits and their copy in 32 bits"}, func(s Shape) (float64, float64) {
		return 0, 6 * sb * float64(s.Vocab)
	})
}

// marginLow and marginHigh are what the guides leave free.
const (
	marginName            = "margin"
	marginLow, marginHigh = 0.2, 0.3
)

func (n *Need) margin() {
	low, high := 0.0, 0.0
	for _, p := range n.Parts {
		low, high = low+p.Low, high+p.High
	}
	n.add(marginName, marginLow*low, marginHigh*high, false, "20 to 30 % of all that", guides)
}
