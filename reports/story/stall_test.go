package story

import (
	"strings"
	"testing"
	"time"
)

// TestStall: a client that did not run is drawn like a pause from its beginning, named in the sentence with the length
// of the longest stall, and counted as no fault.
func TestStall(t *testing.T) {
	r := storyOf(t, `clients 3
client 0 acquire orders 1.0-1.1 ok owner=a lease=2s valid=1950ms
client 1 acquire orders 1.2-3.2 ok owner=b lease=2s valid=1950ms
client 1 release orders 3.5-3.6 ok owner=b
nemesis client-stalled 4.2 note target=client:0 lasted=3s detail="stopped by a signal, not by a fault of the run"
client 0 release orders 4.25-4.3 fail owner=a
client 2 acquire orders 4.4-4.5 ok owner=c lease=2s
nemesis client-stalled 6.25 note target=client:2 lasted=600ms
client 2 release orders 6.4-6.5 ok owner=c
`)
	if len(r.Faults) != 2 || len(r.Notes) != 0 {
		t.Fatalf("%d faults and %d notes, want the two stalls", len(r.Faults), len(r.Notes))
	}
	f := &r.Faults[0]
	if f.Inject != 1200*time.Millisecond || f.Heal != 4200*time.Millisecond || f.Target != "client:0" {
		t.Errorf("the stall is drawn from %v to %v on %s", f.Inject, f.Heal, f.Target)
	}
	if tally := r.Tally(); tally.Injected != 0 {
		t.Errorf("counted as a fault: %+v", tally)
	}
	want := "Client 0 did not run for 3.00 s, and no fault was the reason (and 1 shorter stall)"
	if !strings.Contains(r.Story.Sentence, want) {
		t.Errorf("%q, want %q in it", r.Story.Sentence, want)
	}
	if len(r.Story.Steps) == 0 || !strings.Contains(r.Story.Steps[0].Text, "client 0 did not run: stopped by a signal") {
		t.Errorf("steps %+v", r.Story.Steps)
	}
}
