package remote

import (
	"fmt"
	"net"
	"syscall"
	"testing"
)

func TestKind(t *testing.T) {
	for _, err := range []error{&AuthError{Err: ErrNobodyToAsk}, ErrNobodyToAsk} { // a person cures it, not another key
		if got := Kind(err); got != "declined" {
			t.Errorf("%v is of kind %q", err, got)
		}
	}
	for want, err := range map[string]error{
		"hostkey":  &HostKeyChangedError{},
		"newkey":   &HostKeyUnknownError{Err: ErrDeclined},
		"auth":     &AuthError{},
		"declined": ErrDeclined,
		"name":     &net.DNSError{IsNotFound: true},
		"refused":  syscall.ECONNREFUSED,
		"timeout":  errConnectTimeout,
		"cut":      errCut,
		"other":    syscall.EHOSTUNREACH,
	} {
		if got := Kind(&DialError{Err: fmt.Errorf("dial: %w", err)}); got != want {
			t.Errorf("%v is of kind %q, want %q", err, got, want)
		}
	}
}
