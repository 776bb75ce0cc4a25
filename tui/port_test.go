package tui

import (
	"testing"

	"rentop/session"
	"rentop/session/phrase"
)

// A port there is here by a key, and closed by it; the instance shows those that are open.
func TestPortKey(t *testing.T) {
	v := sample()
	for i := range v.Sessions {
		if s := &v.Sessions[i]; s.Name == "a100-tune" {
			s.Ports = []session.Port{{There: 6006, Here: "127.0.0.1:43111", Why: phrase.Plain("nothing answers")}}
		}
	}
	d := drive(t, v, "en", 120, 30)
	d.press("enter").see("http://127.0.0.1:43111 is its port 6006", "nothing answers")
	d.press("f").see("A port of a100-tune, here").press("8", "8", "8", "8", "enter").heard("port a100-tune 8888").see("http://127.0.0.1:8888 is port 8888 of a100-tune")
	d.press("f", "6", "0", "0", "6", "enter").heard("close port a100-tune 6006").see("port 6006 of a100-tune is closed")
	drive(t, sample(), "zh", 80, 24).press("enter", "f").see("a100-tune 的端口，到本机")
}
