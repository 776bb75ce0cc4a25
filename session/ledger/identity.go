package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Identity is the Data of Added: what an instance was called when it came in.
type Identity struct {
	Name string `json:"name"`
}

// renamed is the Data of Renamed.
type renamed struct {
	To string `json:"to"`
}

// Instance is one that is or was in the config. Its uid stays the same when it is
// renamed; a name that is used again after a removal belongs to a new uid.
type Instance struct {
	UID     string
	Name    string // the last one
	Added   time.Time
	Removed time.Time // zero while it is in the config
}

// ErrNoInstance is in the error where no active instance has the name.
var ErrNoInstance = errors.New("no such instance in the ledger")

// Instances lists all that ever were, in the order they came.
func (l *Ledger) Instances(ctx context.Context) ([]Instance, error) {
	return l.instances(ctx, l.db)
}

func (l *Ledger) instances(ctx context.Context, db querier) ([]Instance, error) {
	events, err := l.query(ctx, db, Filter{Kinds: []Kind{Added, Renamed, Removed}})
	if err != nil {
		return nil, err
	}
	var list []Instance
	byUID := map[string]int{}
	for _, e := range events {
		n, known := byUID[e.Instance]
		switch {
		case e.Kind == Added && !known:
			var id Identity
			if json.Unmarshal(e.Data, &id) == nil && id.Name != "" {
				byUID[e.Instance] = len(list)
				list = append(list, Instance{UID: e.Instance, Name: id.Name, Added: e.At})
			}
		case e.Kind == Renamed && known:
			var r renamed
			if json.Unmarshal(e.Data, &r) == nil && r.To != "" {
				list[n].Name = r.To
			}
		case e.Kind == Removed && known:
			list[n].Removed = e.At
		}
	}
	return list, nil
}

// active finds the one in the config that has the name.
func active(list []Instance, name string) (Instance, bool) {
	n := slices.IndexFunc(list, func(i Instance) bool { return i.Name == name && i.Removed.IsZero() })
	if n < 0 {
		return Instance{}, false
	}
	return list[n], true
}

// Ensure gives the uids of the active instances with those names, and adds those
// that there are none of. Two rentops that ask at once get the same. It writes, and
// waits for others that do, only where one is new.
func (l *Ledger) Ensure(ctx context.Context, names ...string) (uids map[string]string, err error) {
	if slices.Contains(names, "") {
		return nil, errors.New("an instance without a name cannot enter the ledger")
	}
	uids = make(map[string]string, len(names))
	find := func(list []Instance) {
		for _, name := range names {
			if i, ok := active(list, name); ok {
				uids[name] = i.UID
			}
		}
	}
	list, err := l.Instances(ctx)
	if err != nil {
		return nil, err
	}
	find(list)
	if !slices.ContainsFunc(names, func(name string) bool { return uids[name] == "" }) {
		return uids, nil
	}
	err = l.write(ctx, func(tx *sql.Tx) error {
		list, err := l.instances(ctx, tx)
		if err != nil {
			return err
		}
		find(list)
		var added []Event
		for _, name := range names {
			if uids[name] != "" {
				continue
			}
			if uids[name], err = l.newUID(); err != nil {
				return err
			}
			added = append(added, NewEvent(Added, uids[name], "rentop", Identity{Name: name}))
		}
		_, err = l.insert(ctx, tx, added)
		return err
	})
	if err != nil {
		return nil, err
	}
	return uids, nil
}

// Rename gives the active instance from the name to. Its record stays one.
func (l *Ledger) Rename(ctx context.Context, from, to string) error {
	return l.change(ctx, from, func(list []Instance, i Instance) (Event, error) {
		if _, taken := active(list, to); taken || to == "" {
			return Event{}, fmt.Errorf("%q cannot be renamed to %q: the name is taken or empty", from, to)
		}
		return NewEvent(Renamed, i.UID, "user", renamed{To: to}), nil
	})
}

// Remove says that the active instance left the config. Its events stay.
func (l *Ledger) Remove(ctx context.Context, name string) error {
	return l.change(ctx, name, func(_ []Instance, i Instance) (Event, error) {
		return NewEvent(Removed, i.UID, "user", nil), nil
	})
}

func (l *Ledger) change(ctx context.Context, name string, f func([]Instance, Instance) (Event, error)) error {
	return l.write(ctx, func(tx *sql.Tx) error {
		list, err := l.instances(ctx, tx)
		if err != nil {
			return err
		}
		i, ok := active(list, name)
		if !ok {
			return fmt.Errorf("%w: %q", ErrNoInstance, name)
		}
		e, err := f(list, i)
		if err != nil {
			return err
		}
		_, err = l.insert(ctx, tx, []Event{e})
		return err
	})
}
