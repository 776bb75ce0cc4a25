// How an object is cut into parts.

package store

import (
	"fmt"
	"time"
)

// The rules of S3, which the others have taken over
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html).
const (
	maxParts   = 10_000
	maxPart    = 5 << 30
	minPart    = 5 << 20 // but for the last
	maxObject  = maxParts * maxPart
	basePart   = 16 << 20
	mebibyte   = 1 << 20
	validFor   = time.Hour // a signed URL: longer than a part takes on a slow line
	maxKeySize = 1024
)

// partSize is the size of all parts but the last of an object of so many bytes. It
// depends on nothing else: a later run proves an object by the same parts. One that
// is no larger than a part goes as it is.
func partSize(size int64) int64 {
	part := int64(basePart)
	for part < maxPart && (size+part-1)/part > maxParts {
		part *= 2
	}
	return min(part, maxPart)
}

// part is a range of a file.
type part struct {
	number int // from 1
	at, n  int64
}

// parts cuts size bytes. An empty file is one empty part.
func parts(size, each int64) []part {
	list := []part{{number: 1, n: min(size, each)}}
	for at := each; at < size; at += each {
		list = append(list, part{number: len(list) + 1, at: at, n: min(each, size-at)})
	}
	return list
}

// checkSize refuses what no cutting makes fit. Sizes are the instance's word.
func checkSize(size int64) error {
	if size < 0 {
		return fmt.Errorf("the instance says that it has %d bytes", size)
	}
	if size > maxObject {
		return fmt.Errorf("it has %d bytes, and an object at most %d (%d parts of 5 GiB): split it on the instance", size, int64(maxObject), maxParts)
	}
	return nil
}
