package provider

import "context"

// Line runs a shell line of the person's own on this computer, as those of provider =
// "command" are run. When ctx ends it is killed with all that it started.
func Line(ctx context.Context, line string, env []string) error {
	_, err := runLine(ctx, line, env)
	return err
}
