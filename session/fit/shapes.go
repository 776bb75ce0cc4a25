package fit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Shape is what a model's memory depends on beside its size.
type Shape struct {
	Name    string
	Params  float64
	Layers  int
	Hidden  int
	Heads   int
	KVHeads int
	FFN     int
	Vocab   int
}

func (s Shape) headSize() int { return s.Hidden / s.Heads }

// shapes are of models that many people rent for, from each one's config.json.
var shapes = []Shape{
	{"llama-2-7b", 6.738e9, 32, 4096, 32, 32, 11008, 32000},
	{"llama-2-13b", 13.016e9, 40, 5120, 40, 40, 13824, 32000},
	{"llama-2-70b", 68.977e9, 80, 8192, 64, 8, 28672, 32000},
	{"llama-3-8b", 8.030e9, 32, 4096, 32, 8, 14336, 128256},
	{"llama-3-70b", 70.554e9, 80, 8192, 64, 8, 28672, 128256},
	{"mistral-7b", 7.248e9, 32, 4096, 32, 8, 14336, 32768},
	{"qwen2.5-0.5b", 0.494e9, 24, 896, 14, 2, 4864, 151936},
	{"qwen2.5-1.5b", 1.544e9, 28, 1536, 12, 2, 8960, 151936},
	{"qwen2.5-3b", 3.086e9, 36, 2048, 16, 2, 11008, 151936},
	{"qwen2.5-7b", 7.616e9, 28, 3584, 28, 4, 18944, 152064},
	{"qwen2.5-14b", 14.770e9, 48, 5120, 40, 8, 13824, 152064},
	{"qwen2.5-32b", 32.764e9, 64, 5120, 40, 8, 27648, 152064},
	{"qwen2.5-72b", 72.706e9, 80, 8192, 64, 8, 29568, 152064},
}

// Models names those whose shape is known.
func Models() []string {
	var out []string
	for _, s := range shapes {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return out
}

// near is how far the size of a model may lie from the size that is asked for.
const near = 0.12

// find gives the size and the shapes that a model may have.
func find(model string, given Shape) (params float64, list []Shape, err error) {
	name := strings.ToLower(strings.TrimSpace(model))
	for _, s := range shapes {
		if s.Name == name {
			return s.Params, []Shape{s}, nil
		}
	}
	params, err = parseSize(name)
	if err != nil {
		return 0, nil, err
	}
	if given != (Shape{}) {
		if err := given.check(); err != nil {
			return 0, nil, err
		}
		return params, []Shape{given}, nil
	}
	for _, s := range shapes {
		if math.Abs(s.Params-params) <= near*params {
			list = append(list, s)
		}
	}
	return params, list, nil
}

// parseSize reads "7B", "0.5b", "350M".
func parseSize(s string) (float64, error) {
	unit := map[string]float64{"b": 1e9, "m": 1e6}[s[max(len(s)-1, 0):]]
	n, err := strconv.ParseFloat(strings.TrimRight(s, "bm"), 64)
	if unit == 0 || err != nil || !(n > 0) || n*unit > 1e14 || strings.Trim(s[:len(s)-1], "0123456789.") != "" {
		return 0, fmt.Errorf("%.40q is neither a size such as 7B nor one of the models that are known here: %s", s, strings.Join(Models(), ", "))
	}
	return n * unit, nil
}

func (s Shape) check() error {
	for _, n := range []int{s.Layers, s.Hidden, s.Heads, s.KVHeads, s.FFN, s.Vocab} {
		if n < 1 || n > 1<<24 {
			return fmt.Errorf("a model's shape needs all of layers, hidden size, heads, KV heads, feed-forward size and vocabulary")
		}
	}
	if s.Hidden%s.Heads != 0 || s.KVHeads > s.Heads {
		return fmt.Errorf("the hidden size is a multiple of the heads, and KV heads are not more than heads")
	}
	return nil
}
