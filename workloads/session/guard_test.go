package session_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/workloads/session"
)

func TestGuard(t *testing.T) {
	type write struct {
		read  int64
		token uint64
		want  history.TouchValue
		ok    bool
		after int64
	}
	saw := func(read, found int64, seen uint64, fenced bool) history.TouchValue {
		return history.TouchValue{Read: read, Found: found, MaxSeen: seen, Fenced: fenced}
	}
	for _, test := range []struct {
		name   string
		fenced bool
		writes []write
	}{
		{"in order", true, []write{
			{0, 5, saw(0, 0, 0, true), true, 1}, {1, 6, saw(1, 1, 5, true), true, 2}, {2, 6, saw(2, 2, 6, true), true, 3},
		}},
		{"an old token is rejected", true, []write{
			{0, 6, saw(0, 0, 0, true), true, 1}, {0, 5, saw(0, 1, 6, true), false, 1}, {1, 7, saw(1, 1, 6, true), true, 2},
		}},
		{"unfenced, an old token is accepted and an update lost", false, []write{
			{0, 6, saw(0, 0, 0, false), true, 1}, {0, 5, saw(0, 1, 6, false), true, 1}, {1, 7, saw(1, 1, 6, false), true, 2},
		}},
		{"a rejected token changes nothing", true, []write{
			{0, 9, saw(0, 0, 0, true), true, 1}, {1, 3, saw(1, 1, 9, true), false, 1}, {1, 8, saw(1, 1, 9, true), false, 1},
		}},
		{"a lock without tokens", true, []write{
			{0, 0, saw(0, 0, 0, true), true, 1}, {0, 0, saw(0, 1, 0, true), true, 1},
		}},
		{"no token after tokens", true, []write{
			{0, 2, saw(0, 0, 0, true), true, 1}, {1, 0, saw(1, 1, 2, true), false, 1},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := session.NewGuard(test.fenced)
			for i, w := range test.writes {
				var got history.TouchValue
				var ok bool
				g.Write("k", w.read, w.token, func(v history.TouchValue, accepted bool) { got, ok = v, accepted })
				if diff := cmp.Diff(w.want, got); diff != "" || ok != w.ok {
					t.Errorf("write %d: accepted %v, want %v (-want +got):\n%s", i, ok, w.ok, diff)
				}
				if n := g.Read("k"); n != w.after {
					t.Errorf("write %d leaves %d, want %d", i, n, w.after)
				}
			}
			if n := g.Read("another key"); n != 0 {
				t.Errorf("another key has %d", n)
			}
		})
	}
}

// TestGuardRecordsInOrder: writes are recorded in the order of their effects.
func TestGuardRecordsInOrder(t *testing.T) {
	g := session.NewGuard(false)
	var order []int64 // only written inside record; the race detector finds the rest
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				g.Write("k", g.Read("k"), 0, func(v history.TouchValue, _ bool) { order = append(order, v.Read, v.Found) })
			}
		})
	}
	all.Wait()
	value := int64(0)
	for i := 0; i < len(order); i += 2 {
		if order[i+1] != value {
			t.Fatalf("write %d found %d, but the counter was %d", i/2, order[i+1], value)
		}
		value = order[i] + 1
	}
	if got := g.Read("k"); got != value || len(order) != 2*8*200 {
		t.Error(fmt.Sprint("the counter ends at ", got, ", the record at ", value))
	}
}
