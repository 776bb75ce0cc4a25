// Package store brings files of an instance to S3-compatible storage: AWS, Alibaba
// OSS, Tencent COS, R2, MinIO. The bytes go from the instance to the bucket; the key
// stays here. What an instance gets is a URL, signed here, for one PUT of one part
// with one SHA-256, or for one GET, and it works for an hour.
//
//	c, err := store.Open(place, key, store.Options{})
//	err = c.Save(ctx, conn, files, store.Saving{Done: done})
//	proofs, err := c.Prove(ctx, conn, files, nil)
//	err = c.Fetch(ctx, another, wanted, nil, done)
//
// An object is believed only where the storage's own SHA-256 of it (of the whole, or
// of its parts) is that of the file as the instance reads it now. Storage that tells
// none is read back, by the instance, through a signed GET.
package store
