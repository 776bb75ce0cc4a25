// Package sais sorts the suffixes of a text in linear time: SA-IS by Nong, Zhang
// and Chen, "Two Efficient Algorithms for Linear Time Suffix Array Construction"
// (2011).
//
// The code is that of Go's index/suffixarray (sais.go), which does not export it,
// with its copies for each type made one by a type parameter, and its comments
// shortened: read there why it works.
//
// Copyright 2019 The Go Authors. All rights reserved. Use of that code is governed by
// a BSD-style license: see LICENSE in this folder.
package sais

type char interface{ ~byte | ~int32 }

// Sort fills sa with the starts of text's suffixes in the order of the suffixes. Both
// must have the same length, below 2 GiB.
func Sort(text []byte, sa []int32) {
	if int(int32(len(text))) != len(text) || len(text) != len(sa) {
		panic("sais: lengths do not fit")
	}
	clear(sa)
	sais(text, 256, sa, make([]int32, 2*256))
}

// sais fills sa, which must be zero, with the suffix array of text, whose values lie
// below textMax. tmp must hold textMax values; with twice as many it is faster.
func sais[T char](text []T, textMax int, sa, tmp []int32) {
	if len(sa) != len(text) || len(tmp) < textMax {
		panic("sais: lengths do not fit")
	}

	if len(text) == 0 {
		return
	}
	if len(text) == 1 {
		sa[0] = 0
		return
	}

	var freq, bucket []int32
	if len(tmp) >= 2*textMax {
		freq, bucket = tmp[:textMax], tmp[textMax:2*textMax]
		freq[0] = -1
	} else {
		freq, bucket = nil, tmp[:textMax]
	}

	numLMS := placeLMS(text, sa, freq, bucket)
	if numLMS <= 1 {
	} else {
		induceSubL(text, sa, freq, bucket)
		induceSubS(text, sa, freq, bucket)
		length(text, sa, numLMS)
		maxID := assignID(text, sa, numLMS)
		if maxID < numLMS {
			number(sa, numLMS)
			recurse(sa, tmp, numLMS, maxID)
			unmap(text, sa, numLMS)
		} else {
			copy(sa, sa[len(sa)-numLMS:])
		}
		expand(text, freq, bucket, sa, numLMS)
	}
	induceL(text, sa, freq, bucket)
	induceS(text, sa, freq, bucket)

	tmp[0] = -1
}

// count counts the characters of text once, or anew where there is no room to keep them.
func count[T char](text []T, freq, bucket []int32) []int32 {
	if freq != nil && freq[0] >= 0 {
		return freq
	}
	if freq == nil {
		freq = bucket
	}

	clear(freq)
	for _, c := range text {
		freq[c]++
	}
	return freq
}

// bucketMin sets each bucket to the start of its range of sa.
func bucketMin[T char](text []T, freq, bucket []int32) {
	freq = count(text, freq, bucket)
	total := int32(0)
	for i, n := range freq {
		bucket[i] = total
		total += n
	}
}

// bucketMax sets each bucket to the end of its range of sa.
func bucketMax[T char](text []T, freq, bucket []int32) {
	freq = count(text, freq, bucket)
	total := int32(0)
	for i, n := range freq {
		total += n
		bucket[i] = total
	}
}

// placeLMS places into sa the final characters of the LMS-substrings of text, sorted by
// themselves alone, and returns how many there are.
func placeLMS[T char](text []T, sa, freq, bucket []int32) int {
	bucketMax(text, freq, bucket)

	numLMS := 0
	lastB := int32(-1)

	var c0, c1 T
	isTypeS := false
	for i := len(text) - 1; i >= 0; i-- {
		c0, c1 = text[i], c0
		if c0 < c1 {
			isTypeS = true
		} else if c0 > c1 && isTypeS {
			isTypeS = false

			b := bucket[c1] - 1
			bucket[c1] = b
			sa[b] = int32(i + 1)
			lastB = b
			numLMS++
		}
	}

	if numLMS > 1 {
		sa[lastB] = 0
	}
	return numLMS
}

// length records the length of each LMS-substring at index j in sa[j/2].
func length[T char](text []T, sa []int32, numLMS int) {
	end := 0

	var c0, c1 T
	isTypeS := false
	for i := len(text) - 1; i >= 0; i-- {
		c0, c1 = text[i], c0
		if c0 < c1 {
			isTypeS = true
		} else if c0 > c1 && isTypeS {
			isTypeS = false

			j := i + 1
			var code int32
			if end == 0 {
				code = 0
			} else {
				code = int32(end - j)
			}
			sa[j>>1] = code
			end = j + 1
		}
	}
}

// assignID numbers the LMS-substrings, equal ones alike, and returns the highest number.
func assignID[T char](text []T, sa []int32, numLMS int) int {
	id := 0
	lastLen := int32(-1)
	lastPos := int32(0)
	for _, j := range sa[len(sa)-numLMS:] {
		n := sa[j/2]
		if n != lastLen {
			goto New
		}
		{
			n := int(n)
			this := text[j:][:n]
			last := text[lastPos:][:n]
			for i := 0; i < n; i++ {
				if this[i] != last[i] {
					goto New
				}
			}
			goto Same
		}
	New:
		id++
		lastPos = j
		lastLen = n
	Same:
		sa[j/2] = int32(id)
	}
	return id
}

// number makes the text of the subproblem, one number for each LMS-substring, at the end of sa.
func number(sa []int32, numLMS int) {
	w := len(sa)
	for i := len(sa) / 2; i >= 0; i-- {
		j := sa[i]
		if j > 0 {
			w--
			sa[w] = j - 1
		}
	}
}

// recurse sorts the subproblem.
func recurse(sa, oldTmp []int32, numLMS, maxID int) {
	dst, saTmp, text := sa[:numLMS], sa[numLMS:len(sa)-numLMS], sa[len(sa)-numLMS:]

	tmp := oldTmp
	if len(tmp) < len(saTmp) {
		tmp = saTmp
	}
	if len(tmp) < numLMS {
		n := maxID
		if n < numLMS/2 {
			n = numLMS / 2
		}
		tmp = make([]int32, n)
	}

	clear(dst)
	sais(text, maxID, dst, tmp)
}

// unmap turns indexes of the subproblem into indexes of text.
func unmap[T char](text []T, sa []int32, numLMS int) {
	unmap := sa[len(sa)-numLMS:]
	j := len(unmap)

	var c0, c1 T
	isTypeS := false
	for i := len(text) - 1; i >= 0; i-- {
		c0, c1 = text[i], c0
		if c0 < c1 {
			isTypeS = true
		} else if c0 > c1 && isTypeS {
			isTypeS = false

			j--
			unmap[j] = int32(i + 1)
		}
	}

	sa = sa[:numLMS]
	for i := 0; i < len(sa); i++ {
		sa[i] = unmap[sa[i]]
	}
}

// expand spreads the sorted LMS-suffixes over their buckets.
func expand[T char](text []T, freq, bucket, sa []int32, numLMS int) {
	bucketMax(text, freq, bucket)

	x := numLMS - 1
	saX := sa[x]
	c := text[saX]
	b := bucket[c] - 1
	bucket[c] = b

	for i := len(sa) - 1; i >= 0; i-- {
		if i != int(b) {
			sa[i] = 0
			continue
		}
		sa[i] = saX

		if x > 0 {
			x--
			saX = sa[x]
			c = text[saX]
			b = bucket[c] - 1
			bucket[c] = b
		}
	}
}
