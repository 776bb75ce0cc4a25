//go:build !linux

package serve

import (
	"errors"
	"os"

	"rentop/remote/agent/link"
)

// doors opens none: a link has one stripe.
type doors struct{}

func (*doors) open() string        { return "" }
func (*doors) admit(*link.Carrier) {}
func (*doors) close()              {}

func join(string) error { return errors.New("further stripes join only on Linux") }

func stdio() *stripe { return &stripe{in: os.Stdin, out: os.Stdout} }
