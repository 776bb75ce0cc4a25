package codec

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

func header(json string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(json))), json...)
}

func TestSniffSafetensors(t *testing.T) {
	const tensors = `{"__metadata__":{"format":"pt","x":"a \"quoted\" }{"},` +
		`"b":{"dtype":"BF16","shape":[3,4],"data_offsets":[24,48]}, ` +
		`"a":{"dtype":"BF16","shape":[12],"data_offsets":[0,24]},` +
		`"c":{"data_offsets":[48,60],"shape":[],"dtype":"F32"},"d":{"dtype":"U8","shape":[4],"data_offsets":[60,64]}}`
	data := int64(8 + len(tensors))
	want := []Range{{data, 48, BF16}, {data + 48, 12, FP32}, {data + 60, 4, Bytes}}
	if got := Sniff(header(tensors), data+64); !reflect.DeepEqual(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
	// A head that ends within the header: what is whole counts.
	cut := header(tensors)[:strings.Index(tensors, `"c"`)+8+5]
	if got := Sniff(cut, data+64); !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("cut: %v instead of %v", got, want[:1])
	}
	for name, c := range map[string]struct {
		head []byte
		size int64
	}{
		"giant header":      {append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), `{"a":{"dtype":"F32","data_offsets":[0,4]}}`...), 1 << 40},
		"longer than file":  {header(tensors), 20},
		"offsets too far":   {header(`{"a":{"dtype":"F32","data_offsets":[0,4000]}}`), 100},
		"offsets backwards": {header(`{"a":{"dtype":"F32","data_offsets":[40,4]}}`), 100},
		"offsets overflow":  {header(`{"a":{"dtype":"F32","data_offsets":[0,99999999999999999999999999]}}`), 100},
		"no JSON":           {header(`{{{{{{{{{{{{{{{{{{{{{`), 100},
		"empty":             {nil, 0},
	} {
		if got := Sniff(c.head, c.size); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSniffTorch(t *testing.T) {
	archive := func(pickle string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, e := range [][2]string{{"archive/data.pkl", pickle}, {"archive/data/0", strings.Repeat("x", 1000)}} {
			f, err := w.CreateHeader(&zip.FileHeader{Name: e[0], Method: zip.Store})
			if err != nil {
				t.Fatal(err)
			}
			f.Write([]byte(e[1]))
		}
		w.Close()
		return b.Bytes()
	}
	b := archive("\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(ctorch\nBFloat16Storage\nX")
	got := Sniff(b, int64(len(b)))
	if len(got) != 1 || got[0].Kind != BF16 || got[0].Off%64 != 0 || got[0].Off+got[0].Len != int64(len(b)) {
		t.Errorf("%v", got)
	}
	for _, pickle := range []string{"ctorch\nHalfStorage\nctorch\nFloatStorage\n", "nothing"} {
		b := archive(pickle)
		if got := Sniff(b, int64(len(b))); got != nil {
			t.Errorf("%q: %v", pickle, got)
		}
	}
}

func TestHintAt(t *testing.T) {
	ranges := []Range{{100, 1000, BF16}, {1100, 4000, FP32}}
	for _, c := range []struct {
		off  int64
		n    int
		want Hint
	}{
		{0, 1000, Hint{Kind: BF16, Phase: 0}},
		{101, 100, Hint{Kind: BF16, Phase: 1}},
		{900, 1000, Hint{Kind: FP32, Phase: 0}},
		{1103, 500, Hint{Kind: FP32, Phase: 3}},
		{6000, 500, Hint{}},
		{5000, 1000, Hint{}},
	} {
		got := HintAt(ranges, c.off, c.n)
		if got.Kind.Width() > 0 {
			// The phase must name the same place in the range.
			got.Phase %= got.Kind.Width()
		}
		if got != c.want {
			t.Errorf("%d+%d: %+v instead of %+v", c.off, c.n, got, c.want)
		}
	}
}

func FuzzSniff(f *testing.F) {
	f.Add(header(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`), int64(100))
	f.Add([]byte("PK\x03\x04"+strings.Repeat("\x00", 40)), int64(1000))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		end := int64(0)
		for _, r := range Sniff(head, size) {
			if r.Off < end || r.Len <= 0 || r.Off+r.Len > size || r.Kind > FP32 {
				t.Fatal(fmt.Sprint(r, size))
			}
			end = r.Off + r.Len
		}
	})
}
