package session

import (
	"testing"

	"rentop/remote/gpu"
)

// What remote/gpu says is kept word for word in English, and is a phrase where it is known.
func TestProblemText(t *testing.T) {
	for _, c := range []struct {
		what, cure string
		known      bool
	}{
		{"a GPU has fallen off the bus (GPU 00000000:65:00.0)", "update the driver", true},
		{"nvidia-smi crashes", "restart the instance", true},
		{"nvidia-smi failed (exit 9): (GPU or not)", "", false},
		{"", "", false},
	} {
		what, cure := ProblemText(&gpu.Problem{What: c.what, Cure: c.cure})
		if what.String() != c.what || cure.String() != c.cure {
			t.Errorf("%q, %q became %q, %q", c.what, c.cure, what, cure)
		}
		if known := len(what) > 0 && what[0].ID != ""; known != c.known {
			t.Errorf("%q: known %v", c.what, known)
		}
	}
}
