// The manifest beside the artifacts: `sha256sum -c rentop.sha256` in a copy of the
// prefix checks them all.

package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ManifestName is its name below the prefix.
const ManifestName = "rentop.sha256"

const maxManifest = 64 << 20

// WriteManifest puts files that were proven (hex SHA-256 by path below the prefix)
// into the manifest. Lines of an earlier one stay where their object is still there.
func (c *Client) WriteManifest(ctx context.Context, proven map[string]string) error {
	all, err := c.manifest(ctx)
	if err != nil {
		return fmt.Errorf("the manifest in %s: %w", c.place.URL(), err)
	}
	if len(all) > 0 {
		there := map[string]bool{}
		if err := c.List(ctx, "", func(o Listed) error { there[o.Rel] = true; return nil }); err != nil {
			return fmt.Errorf("the manifest in %s: %w", c.place.URL(), err)
		}
		maps.DeleteFunc(all, func(rel, _ string) bool { return !there[rel] })
	}
	maps.Copy(all, proven)
	var b strings.Builder
	for _, rel := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(sumLine(rel, all[rel]))
	}
	if err := c.write(ctx, ManifestName, b.String()); err != nil {
		return fmt.Errorf("write the manifest into %s: %w", c.place.URL(), err)
	}
	return nil
}

// manifest reads what is there; none is empty. Lines that are not understood are
// not ours and go.
func (c *Client) manifest(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	text, err := c.read(ctx, ManifestName, maxManifest)
	if absent(err) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if rel, sum, ok := parseSumLine(strings.TrimSuffix(line, "\n")); ok {
			out[rel] = sum
		}
	}
	return out, nil
}

// sumLine is a line as sha256sum writes it; names with a line end have no object.
func sumLine(rel, sum string) string {
	if name := strings.ReplaceAll(rel, `\`, `\\`); name != rel {
		return `\` + sum + "  " + name + "\n"
	}
	return sum + "  " + rel + "\n"
}

func parseSumLine(line string) (rel, sum string, ok bool) {
	line, escaped := strings.CutPrefix(line, `\`)
	sum, rel, ok = strings.Cut(line, "  ")
	if escaped {
		rel = strings.ReplaceAll(rel, `\\`, `\`)
	}
	b, err := hex.DecodeString(sum)
	return rel, sum, ok && err == nil && len(b) == 32 && checkName(rel) == nil
}
