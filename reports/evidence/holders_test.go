package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// recorded is a run with a history in text.
func recorded(t *testing.T, text string) *Run {
	t.Helper()
	h, err := foreign.ReadText(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return New(rundir.Manifest{}, h, h.Samples, checker.Judgement{})
}

// TestBarsOfValues: a change of the value ends the bar of a node, also if the value names nobody or its client stays
// the same; the value of a renewal with SET XX belongs to the renewing client.
func TestBarsOfValues(t *testing.T) {
	const holds = `clients 2
client 0 acquire orders 1.0-1.01 ok owner=a lease=1s
client 1 acquire orders 1.2-2.05 ok owner=b lease=2s
client 1 release orders 3.5-3.6 fail owner=b code=not-held
client 0 release orders 3.7-3.8 ok owner=a
witness n1 0.9
witness n1 1.1 orders owner=f3a1 ttl=900ms
`
	for name, test := range map[string]struct{ samples, want string }{
		"set back twice": {"witness n1 1.9 orders owner=f3a1 ttl=100ms\nwitness n1 2.1 orders owner=77b0 ttl=1.95s\n" +
			"witness n1 2.2 orders owner=f3a1 ttl=1s\nwitness n1 2.3 orders owner=77b0 ttl=2s\nwitness n1 2.4\n",
			"1.100 client 0, 2.100 client 1, 2.200 client 0, 2.300 client 1, 2.400 free"},
		"kept": {"witness n1 1.9 orders owner=f3a1 ttl=100ms\nwitness n1 2.1 orders owner=77b0 ttl=1.95s\n" +
			"witness n1 2.2 orders owner=77b0 ttl=1.85s\nwitness n1 2.4\n", "1.100 client 0, 2.100 client 1, 2.400 free"},
		"changed by a renewal": {"witness n1 1.5 orders owner=f3a2 ttl=1s\nwitness n1 1.6 orders owner=f3a2 ttl=900ms\n",
			"1.100 client 0, 1.500 client 0"},
		"held more than once": {"witness n1 1.2 orders owner=f3a1 count=2 ttl=1s\n" +
			"witness n1 1.3 orders owner=f3a1 count=1 ttl=900ms\n", "1.100 client 0, 1.200 client 0 · count 2, 1.300 client 0"},
		"of an acquire that is not known": {"witness n1 1.15\nwitness n1 1.18 orders owner=0c0c ttl=1s\n",
			"1.100 client 0, 1.150 free, 1.180 unknown value"},
	} {
		r := recorded(t, holds+test.samples)
		var bars []string
		for _, state := range r.Witness.States("n1", Interval{msE(1050), r.History.End}, r.SameHolder("orders")) {
			text := "free"
			if _, held := state.First.Keys["orders"]; held {
				text = r.HeldBy("orders", &state.First).Label
			}
			if state.From > msE(1000) {
				bars = append(bars, fmt.Sprintf("%.3f %s", state.From.Seconds(), text))
			}
		}
		if got := strings.Join(bars, ", "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestValidityOfAnIgnoredLease: no validity is drawn for a hold that servers keep without any end, although the client
// requested a lease.
func TestValidityOfAnIgnoredLease(t *testing.T) {
	for state, drawn := range map[string]bool{
		"owner=1 ttl=-1ns": false, "owner=5a0e8ff0 ttl=-1ns": false, "owner=1 ttl=900ms": true,
		"owner=1795866667000 ttl=-1ns": true, "permits=1 limit=2 ttl=-1ns": true,
	} {
		r := recorded(t, "clients 1\nclient 0 acquire orders 1.0-1.01 ok owner=a lease=1s\nwitness n1 0.9\n"+
			"witness n1 1.1 orders "+state+"\nwitness n1 3.0 orders "+state+"\n")
		if until, _ := r.Holds[0].Promised(); until > 0 != drawn || r.Holds[0].ValidUntil() != msE(2000) {
			t.Errorf("%s: the validity is drawn until %s, want one: %v", state, until, drawn)
		}
	}
	r := recorded(t, "clients 1\nclient 0 acquire orders 1.0-1.01 ok owner=a valid=2s\n"+
		"witness n1 1.1 orders owner=1 ttl=-1ns\n")
	if until, _ := r.Holds[0].Promised(); until == 0 || until == history.Infinity {
		t.Errorf("a stated validity is drawn until %s", until)
	}
}
