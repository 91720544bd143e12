package history_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestEDNRoundTrip: recorded events survive EDN, except for empty values and
// types of the nemesis.
func TestEDNRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var want []history.Event
	for i := range int64(3000) {
		e := anyEvent(r, i)
		if e.Process == history.Nemesis {
			if e.Value != nil {
				e.Value = &history.Value{Fault: e.Value.Fault}
			}
			if r.IntN(3) == 0 {
				left := &history.LeftoverValue{Keys: []string{"a", e.Key, "b"}[:r.IntN(3)], Waiters: r.IntN(2), Renewals: r.IntN(2)}
				e.F, e.Value = history.LeftoverEvent, &history.Value{Left: left}
			}
		} else if e.Value != nil {
			e.Value.Fault = nil
			e.Value.Limit = r.IntN(3)
		}
		if e.Value != nil && *e.Value == (history.Value{}) {
			e.Value = nil
		}
		want = append(want, e)
	}
	var out bytes.Buffer
	if err := foreign.WriteEDN(&out, want); err != nil {
		t.Fatal(err)
	}
	var got []history.Event
	info, err := foreign.ReadEvents(&out, "x", foreign.Options{Format: foreign.FormatEDN},
		func(e *history.Event, _ int) error {
			got = append(got, e.Clone())
			return nil
		})
	if err != nil || len(got) != len(want) || len(info.Problems) != 0 {
		t.Fatalf("err %v, %d events, info %+v", err, len(got), info)
	}
	for i := range want {
		if want[i].Time < 0 { // never recorded
			continue
		}
		if diff := cmp.Diff(want[i], got[i], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("event %d (-want +got):\n%s", i, diff)
		}
	}
}
