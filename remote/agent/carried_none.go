//go:build !carried

package agent

// carried is nil: this build carries no helpers.
func carried() (map[string]*Binary, error) { return nil, nil }

// carriedGPU is nil likewise.
func carriedGPU() (map[string]*Binary, error) { return nil, nil }

// carriedStore is nil likewise.
func carriedStore() (map[string]*Binary, error) { return nil, nil }

// carriedGuard is nil likewise.
func carriedGuard() (map[string]*Binary, error) { return nil, nil }
