package session

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rentop/remote"
	"rentop/remote/sshtest"
	"rentop/remote/store/storetest"
	"rentop/session/config"
	"rentop/session/release"
)

func torchFile() []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, _ := w.CreateHeader(&zip.FileHeader{Name: "archive/data.pkl"})
	f.Write(bytes.Repeat([]byte("weights"), 1000))
	w.Close()
	return b.Bytes()
}

// TestWatchSave: a checkpoint goes to the bucket as a whole and only once it is, one
// that its writer left half stays behind, and the newest are kept.
func TestWatchSave(t *testing.T) {
	t.Parallel()
	bucket := storetest.Start(t, "")
	srv := sshtest.Start(t, sshtest.Options{})
	dir := t.TempDir()
	text := fmt.Sprintf("[bucket.runs]\nendpoint = %q\n", bucket.Endpoint)
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir, false, srv)
	f.opt.Secrets = &remote.MemorySecrets{}
	if err := f.opt.Secrets.Set("s3:runs", storetest.KeyID+"\n"+storetest.Secret); err != nil {
		t.Fatal(err)
	}
	if err := f.Add(config.Instance{Name: "box", SSH: sshLine(srv, srv.Addr), Artifacts: []config.Artifact{{Path: "~/ckpt", To: "s3://runs/7b", Every: "1s", Keep: 2}}}); err != nil {
		t.Fatal(err)
	}
	there := func(rel string) string {
		return filepath.Join(bucket.Root, storetest.Bucket, "7b", filepath.FromSlash(rel))
	}
	write := func(rel string, text []byte) {
		t.Helper()
		full := filepath.Join(srv.Home, "ckpt", rel)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("checkpoint-100/model.pt", torchFile())
	write("checkpoint-100/trainer_state.json", []byte("{}"))
	write("half-step-7.pt", torchFile()[:500])
	events := make(chan SaveEvent, 64)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	s := session(t, f, "box")
	go func() {
		ended <- s.WatchSave(ctx, PullWatch{Settle: 300 * time.Millisecond}, func(e SaveEvent) { events <- e })
	}()
	var failed []string
	var dropped []string
	await := func(rel string) {
		t.Helper()
		late := time.After(30 * time.Second)
		for {
			if _, err := os.Stat(there(rel)); err == nil {
				return
			}
			select {
			case e := <-events:
				dropped = append(dropped, e.Dropped...)
				for _, one := range e.Saved {
					if one.Err != nil {
						failed = append(failed, one.Path+": "+one.Err.Error())
					}
				}
				if e.Err != nil {
					t.Fatal(e.Err)
				}
			case err := <-ended:
				t.Fatalf("it ended: %v", err)
			case <-time.After(50 * time.Millisecond):
			case <-late:
				t.Fatalf("%s did not come; failed: %q", rel, failed)
			}
		}
	}
	await("checkpoint-100/trainer_state.json")
	if _, err := os.Stat(there("checkpoint-100/model.pt")); err != nil {
		t.Errorf("the mark came before what it marks: %v", err)
	}
	if _, err := os.Stat(there("half-step-7.pt")); err == nil {
		t.Error("a file that was cut short was saved")
	}
	for _, n := range []string{"200", "300"} {
		write("checkpoint-"+n+"/model.pt", torchFile())
		write("checkpoint-"+n+"/trainer_state.json", []byte("{}"))
		await("checkpoint-" + n + "/trainer_state.json")
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end) && !slices.Contains(dropped, "checkpoint-100"); time.Sleep(20 * time.Millisecond) {
		select {
		case e := <-events:
			dropped = append(dropped, e.Dropped...)
		default:
		}
	}
	if _, err := os.Stat(there("checkpoint-100/model.pt")); err == nil || !slices.Equal(dropped, []string{"checkpoint-100"}) {
		t.Errorf("of three, two are kept: dropped %q", dropped)
	}
	if len(failed) != 1 || !strings.Contains(failed[0], "half-step-7.pt: the file is not complete") {
		t.Errorf("failures: %q", failed)
	}
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(15 * time.Second):
		t.Error("it did not end")
	}
}

func TestNewestCheckpoints(t *testing.T) {
	t.Parallel()
	at := func(rel string, minute int) release.Found {
		return release.Found{Path: "/c/" + rel, Rel: rel, ModTime: time.Unix(int64(60*minute), 0)}
	}
	files := []release.Found{
		at("log.txt", 0), at("checkpoint-1000/a.bin", 3), at("checkpoint-900/a.bin", 2), at("checkpoint-900/b.bin", 9), at("checkpoint-800/a.bin", 1),
		at("b/epoch=1-step=5.ckpt", 1), at("b/epoch=2-step=9.ckpt", 2), at("b/epoch=2-step=9.ckpt.txt", 0), at("b/model.pt", 0),
	}
	var got []string
	for _, f := range newestCheckpoints(files, 1) {
		got = append(got, f.Rel)
	}
	want := []string{"log.txt", "checkpoint-900/a.bin", "checkpoint-900/b.bin", "b/epoch=2-step=9.ckpt", "b/epoch=2-step=9.ckpt.txt", "b/model.pt"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if n := len(newestCheckpoints(files, 0)); n != len(files) {
		t.Errorf("without keep %d of %d", n, len(files))
	}
}
