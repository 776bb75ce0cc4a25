package ledger

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// Ledger is one open ledger file. It may be used by several goroutines and
// several processes at once.
type Ledger struct {
	path   string
	clock  func() time.Time
	db     *sql.DB
	newUID func() (string, error)
}

// maxData bounds one event's data.
const maxData = 4 << 20

// Open opens the ledger at path and makes it where there is none, readable by
// its owner only. clock gives Event.Recorded; nil is time.Now.
func Open(path string, clock func() time.Time) (*Ledger, error) {
	if clock == nil {
		clock = time.Now
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	l := &Ledger{path: path, clock: clock, newUID: randomUID}
	if err := l.prepareFile(); err != nil {
		return nil, err
	}
	l.db, err = sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, l.failed("opening", err)
	}
	// One connection: writes of this process never wait for each other inside
	// SQLite, and other processes are waited for by busy_timeout.
	l.db.SetMaxOpenConns(1)
	if err = l.useWAL(); err == nil {
		err = l.migrate()
	}
	if err != nil {
		l.db.Close()
		return nil, err
	}
	return l, nil
}

// prepareFile makes the file and its folder private before SQLite sees them; the
// files beside it (-wal, -shm) take its mode.
func (l *Ledger) prepareFile() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return l.failed("making the folder of", err)
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return l.failed("opening", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return l.failed("opening", err)
	}
	if info.IsDir() {
		return l.failed("opening", errors.New("it is a folder"))
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil && !errors.Is(err, fs.ErrPermission) {
			return l.failed("making private", err)
		}
	}
	return nil
}

// dsn is the path as a URI, so that ?, # and % in it are themselves.
func dsn(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/… on Windows
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() +
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)"
}

// Close ends the use of the file. Everything appended is already on the disk.
func (l *Ledger) Close() error {
	if err := l.db.Close(); err != nil {
		return l.failed("closing", err)
	}
	return nil
}

// Append writes the events in one step: all of them are on the disk when it
// returns nil, and none where it fails. It gives the Seq of the last; those of
// one call are consecutive. Seq and Recorded are set by the ledger, At is now
// where it is zero.
func (l *Ledger) Append(ctx context.Context, events ...Event) (last int64, err error) {
	if len(events) == 0 {
		return l.Seq(ctx)
	}
	err = l.write(ctx, func(tx *sql.Tx) error {
		last, err = l.insert(ctx, tx, events)
		return err
	})
	return last, err
}

// write runs f in one IMMEDIATE transaction.
func (l *Ledger) write(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return l.failed("writing to", err)
	}
	if err := f(tx); err != nil {
		tx.Rollback()
		return l.failed("writing to", err)
	}
	if err := tx.Commit(); err != nil {
		return l.failed("writing to", err)
	}
	return nil
}

func (l *Ledger) insert(ctx context.Context, tx *sql.Tx, events []Event) (last int64, err error) {
	now := l.clock()
	for _, e := range events {
		if e.At.IsZero() {
			e.At = now
		}
		if err := valid(e); err != nil {
			return 0, err
		}
		var data any
		if e.Data != nil {
			data = string(e.Data)
		}
		r, err := tx.ExecContext(ctx, `INSERT INTO events (at, recorded, instance, kind, source, data) VALUES (?, ?, ?, ?, ?, ?)`,
			e.At.UnixNano(), now.UnixNano(), e.Instance, string(e.Kind), e.Source, data)
		if err != nil {
			return 0, err
		}
		if last, err = r.LastInsertId(); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func valid(e Event) error {
	switch y := e.At.Year(); {
	case e.Kind == "":
		return errors.New("an event has no kind")
	case y < 1970 || y > 2199:
		return fmt.Errorf("the event %q is dated %s: not possible", e.Kind, e.At.Format(time.DateOnly))
	case len(e.Data) > maxData:
		return fmt.Errorf("the event %q holds %d bytes: at most %d fit", e.Kind, len(e.Data), maxData)
	case e.Data != nil && !json.Valid(e.Data):
		return fmt.Errorf("the event %q holds invalid JSON", e.Kind)
	}
	return nil
}

// Filter chooses events; its zero value is all of them.
type Filter struct {
	Instance string    // uid; "": of any
	Since    time.Time // At is not before
	Kinds    []Kind    // nil: any
	AfterSeq int64     // Seq is greater: what another rentop wrote meanwhile
}

// Events gives the chosen events in the order of writing.
func (l *Ledger) Events(ctx context.Context, f Filter) ([]Event, error) {
	return l.query(ctx, l.db, f)
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (l *Ledger) query(ctx context.Context, db querier, f Filter) ([]Event, error) {
	q, args := `SELECT seq, at, recorded, instance, kind, source, data FROM events WHERE seq > ?`, []any{f.AfterSeq}
	if f.Instance != "" {
		q, args = q+` AND instance = ?`, append(args, f.Instance)
	}
	if !f.Since.IsZero() {
		q, args = q+` AND at >= ?`, append(args, f.Since.UnixNano())
	}
	if len(f.Kinds) > 0 {
		q += ` AND kind IN (?` + strings.Repeat(`, ?`, len(f.Kinds)-1) + `)`
		for _, k := range f.Kinds {
			args = append(args, string(k))
		}
	}
	rows, err := db.QueryContext(ctx, q+` ORDER BY seq`, args...)
	if err != nil {
		return nil, l.failed("reading", err)
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		var e Event
		var at, recorded int64
		var data sql.RawBytes
		if err := rows.Scan(&e.Seq, &at, &recorded, &e.Instance, &e.Kind, &e.Source, &data); err != nil {
			return nil, l.failed("reading", err)
		}
		e.At, e.Recorded = time.Unix(0, at).UTC(), time.Unix(0, recorded).UTC()
		if data != nil {
			e.Data = slices.Clone(json.RawMessage(data))
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, l.failed("reading", err)
	}
	return events, nil
}

// Seq is the newest event's, 0 where there is none. It is cheap: compare it with
// the last one seen to learn whether another rentop wrote something.
func (l *Ledger) Seq(ctx context.Context) (int64, error) {
	var seq int64
	if err := l.db.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM events`).Scan(&seq); err != nil {
		return 0, l.failed("reading", err)
	}
	return seq, nil
}

// Check reads the whole file and says what is wrong with it.
func (l *Ledger) Check(ctx context.Context) error {
	var word string
	if err := l.db.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&word); err != nil {
		return l.failed("checking", err)
	}
	if word != "ok" {
		return l.damaged(errors.New(word))
	}
	return nil
}

func randomUID() (string, error) {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
