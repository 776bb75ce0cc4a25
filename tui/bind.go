package tui

// The person's own keys for actions, checked before the screen opens.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"rentop/remote"
	"rentop/tui/text"
)

// keyNames are the keys that have a name instead of a character.
var keyNames = []string{
	"enter", "esc", "tab", "space", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "backspace", "delete", "insert",
	"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
}

// CheckKeys says which of Options.Keys is wrong and why; what is "" where none is.
func CheckKeys(keys map[string][]string) (action, what string) {
	l, err := text.Load("en")
	if err != nil {
		return "", err.Error()
	}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		if !l.Has("act." + id + ".help") {
			return id, fmt.Sprintf("ui.keys: there is no action %q; the names are those that the palette (:) shows", remote.Short(id, 60))
		}
		if len(keys[id]) == 0 {
			return id, fmt.Sprintf("ui.keys.%s needs a key", id)
		}
		for _, k := range keys[id] {
			if !isKey(k) {
				return id, fmt.Sprintf("ui.keys.%s: %q is no key; write a character, or a name such as enter, pgdown, f5 or ctrl+r", id, remote.Short(k, 30))
			}
		}
	}
	return "", ""
}

func isKey(k string) bool {
	for _, mod := range []string{"ctrl+", "alt+", "shift+"} {
		k = strings.TrimPrefix(k, mod)
	}
	r, n := utf8.DecodeRuneInString(k)
	return slices.Contains(keyNames, k) || n > 0 && n == len(k) && r > ' ' && r != utf8.RuneError
}
