package codec

import "github.com/klauspost/compress/zstd"

// Level is how hard to compress.
type Level uint8

const (
	LevelNone  Level = iota // send as it is
	LevelQuick              // see S2
	LevelFastest
	LevelDefault
	LevelBetter
	LevelBest
	LevelMost // sorts blocks: see Sorted
	levels
)

func (l Level) String() string {
	return [...]string{"none", "quick", "fastest", "default", "better", "best", "most", "?"}[min(l, levels)]
}

func (l Level) zstd() zstd.EncoderLevel {
	switch l {
	case LevelFastest:
		return zstd.SpeedFastest
	case LevelDefault:
		return zstd.SpeedDefault
	case LevelBetter:
		return zstd.SpeedBetterCompression
	}
	return zstd.SpeedBestCompression
}

// BlockSize is the raw length, in bytes, that blocks of a level should have.
// Blocks are independent: short ones leave sooner and long ones pack better.
func (l Level) BlockSize() int {
	switch l {
	case LevelNone, LevelQuick, LevelFastest:
		return 1 << 20
	case LevelDefault:
		return 2 << 20
	}
	return MaxBlock
}
