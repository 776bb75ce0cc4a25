package session

import (
	"fmt"
	"path/filepath"

	"rentop/remote/demo"
	"rentop/remote/provider"
	"rentop/session/config"
)

// DemoOptions makes a Fleet's options of the simulated machines. Everything that
// rentop writes lies in the demo's own folder.
func DemoOptions(d *demo.Fleet) Options {
	own := filepath.Join(d.Dir(), "rentop")
	o := Options{
		Dirs:      Dirs{Config: own, State: own},
		Simulated: true, Live: true,
		Providers: map[string]provider.Provider{demo.Kind: d.Provider()},
		HostKeys:  map[string]string{},
		HomeOnly:  true, // the machines share one file system: this one's
	}
	for _, m := range d.Instances() {
		in := config.Instance{
			Name: m.Name, ID: m.ID, Provider: demo.Kind,
			SSH:  fmt.Sprintf("ssh -p %d -i %s %s@%s", m.Port, m.KeyFile, m.User, m.Host),
			Rate: &config.Rate{PerHour: m.RatePerHour, Currency: m.Currency, WhileStopped: m.WhileStopped},
			Sync: []config.Pair{{Local: filepath.Join(own, "project"), Remote: "~/project"}},
		}
		if m.DiskGB > 0 {
			in.Disk = &config.Disk{GB: int64(m.DiskGB), PerGBMonth: m.PerGBMonth}
		}
		for _, a := range m.Artifacts {
			in.Artifacts = append(in.Artifacts, config.Artifact{Path: "~/" + a, To: filepath.Join(own, "results", m.Name)})
		}
		o.HostKeys[m.Name] = m.HostKey
		o.Instances = append(o.Instances, in)
	}
	return o
}
