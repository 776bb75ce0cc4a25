package sync

import (
	"context"
)

// This file holds what a transport may offer beside Transport; the engine uses
// it where it is there and does without elsewhere.

// WalkRules says what a walk of the instance leaves out there.
type WalkRules struct {
	GitIgnore, OwnIgnore bool     // honour the ignore files that lie there
	Include, Exclude     []string // patterns with gitignore's syntax that win over the files
}

// RuledWalker is a Streamer whose walk reads the ignore files on the instance
// itself (tree.Walk does), so that what they leave out is neither read nor sent.
type RuledWalker interface {
	Streamer
	// WalkRuled is Walk without what the rules leave out; ignored counts that, a
	// folder once. Our own names are emitted all the same.
	WalkRuled(ctx context.Context, root string, r WalkRules, emit func(Entry) error) (ignored int64, err error)
}

// Spacer tells how much room a file system has. root is absolute and may be
// missing: then its nearest folder that is there counts.
type Spacer interface {
	Space(ctx context.Context, root string) (free, total int64, err error)
}
