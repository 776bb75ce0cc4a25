package tree

import "time"

// identity is what tells a file from another that took its name.
type identity struct {
	inode
	links   uint64
	changed time.Time // ctime: nothing but the system sets it
}
