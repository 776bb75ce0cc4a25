// Package services lists what the helper on an instance can do. `rentop agent` is
// the same.
package services

import (
	"rentop/remote/agent/serve"
	"rentop/remote/gpu/nvml"
	"rentop/sync/far"
)

// All are the services by name.
func All() map[string]serve.Service {
	all := map[string]serve.Service{"sync": far.Serve}
	if nvml.Built { // a release's helper is built without; its rentop-gpu is with
		all["gpu"] = nvml.Serve
	}
	return all
}
