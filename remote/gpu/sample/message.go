package sample

// The messages of the helper's "gpu" service: samples, or once why there are none.

// Kinds of messages, as a link carries them.
const (
	MessageSample  byte = 'S' // an Encoder's, in order
	MessageRefused byte = 'R' // AppendProblem's; the last one
)

// AppendProblem writes a Problem.
func AppendProblem(dst []byte, p Problem) []byte {
	w := writer(dst)
	w.text(p.What, longText)
	w.text(p.Cure, longText)
	return w
}

// ReadProblem reads what AppendProblem wrote.
func ReadProblem(b []byte) (Problem, error) {
	r := reader{b: b}
	p := Problem{What: r.text(longText), Cure: r.text(longText)}
	return p, r.err
}
