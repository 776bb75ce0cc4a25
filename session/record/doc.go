// Package record keeps what the fleet's sessions showed in one file, and plays it
// again: views with their samples, once a second at most; no keys, no logs, no secrets.
//
//	w, err := record.Create("night.rec", record.Options{Redact: true})
//	err = w.Add(fleet.View())        // whole at a moment's notice: a kill -9 loses what was not added
//
//	r, err := record.Open("night.rec")
//	v, err := r.At(3)                // the fourth view
//
// The file is a row of chunks: a head of 28 bytes with kind, lengths, time and
// checksums, then zstd. A chunk holds what changed since the one before; each minute
// one is whole, so that seeking decodes a minute at most. A file that ends within a
// chunk is read up to it. Version 1 says what the chunks hold; fields are added,
// never changed. Whoever made a file, reading it is bounded and its text is cleaned.
package record
