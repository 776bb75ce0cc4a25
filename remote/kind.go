package remote

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// Kind names what a failed connection failed by, for those who say it in another
// language: "auth", "hostkey", "newkey", "declined", "name", "refused",
// "timeout", "cut" or "other".
func Kind(err error) string {
	var auth *AuthError
	var unknown *HostKeyUnknownError
	var changed *HostKeyChangedError
	var dns *net.DNSError
	var slow net.Error
	switch {
	case errors.As(err, &changed):
		return "hostkey"
	case errors.As(err, &unknown):
		return "newkey"
	case errors.As(err, &auth) && !errors.Is(err, ErrNobodyToAsk):
		return "auth"
	case errors.Is(err, ErrDeclined), errors.Is(err, ErrNobodyToAsk):
		return "declined"
	case errors.As(err, &dns):
		return "name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, errConnectTimeout), errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	case errors.Is(err, errCut), errors.Is(err, ErrCut), errors.Is(err, ErrClosed), errors.Is(err, syscall.ECONNRESET):
		return "cut"
	}
	return "other"
}
