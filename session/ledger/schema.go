package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// migrations lead from each version of the schema to the next. They are only
// ever added to: a ledger of any older rentop is brought forward when opened.
var migrations = []string{
	`CREATE TABLE events (
		seq      INTEGER PRIMARY KEY AUTOINCREMENT,
		at       INTEGER NOT NULL, -- nanoseconds since 1970, UTC
		recorded INTEGER NOT NULL,
		instance TEXT NOT NULL,
		kind     TEXT NOT NULL CHECK (kind <> ''),
		source   TEXT NOT NULL,
		data     TEXT
	) STRICT;
	CREATE INDEX events_by_instance ON events (instance, seq);
	CREATE TRIGGER events_never_change BEFORE UPDATE ON events
		BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: an event is never changed'); END;
	CREATE TRIGGER events_never_replaced BEFORE INSERT ON events WHEN NEW.seq IN (SELECT seq FROM events)
		BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: an event is never replaced'); END;
	CREATE TRIGGER events_never_go BEFORE DELETE ON events
		BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: an event is never deleted'); END;`,
}

// useWAL makes the file a write-ahead one, which it then stays. SQLite does not
// wait for others at this step, so two rentops that make the file at once try again.
func (l *Ledger) useWAL() error {
	const tries, pause = 200, 50 * time.Millisecond
	for n := 1; ; n++ {
		var mode string
		err := l.db.QueryRow(`PRAGMA journal_mode = WAL`).Scan(&mode)
		if err == nil && mode != "wal" {
			err = fmt.Errorf("this disk allows no write-ahead log (SQLite says %q): set RENTOP_STATE_DIR to a folder on a local disk", mode)
		}
		if err == nil || n == tries || !isBusy(err) {
			return l.failed("opening", err)
		}
		time.Sleep(pause)
	}
}

// migrate brings the file to the newest schema, in one transaction, also where
// two rentops open it at the same moment.
func (l *Ledger) migrate() error {
	return l.write(context.Background(), func(tx *sql.Tx) error {
		if _, err := tx.Exec(`CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT`); err != nil {
			return err
		}
		version := 0
		if err := tx.QueryRow(`SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&version); err != nil {
			return err
		}
		if version > len(migrations) {
			return fmt.Errorf("it was written by a newer rentop (schema %d, this one knows %d): upgrade rentop, or use another folder with RENTOP_STATE_DIR", version, len(migrations))
		}
		for ; version < len(migrations); version++ {
			if _, err := tx.Exec(migrations[version]); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO schema_version (version) VALUES (?)`, version+1); err != nil {
				return err
			}
		}
		return nil
	})
}
