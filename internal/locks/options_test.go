package locks

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

func TestOptionsOfTheLibrary(t *testing.T) {
	var o lockOptions
	err := apply(map[string]string{"lease": "2s", "poll": "200ms", "replicas": "all", "replica_timeout": "300ms",
		"max_hold": "9s", "slot_reload": "60s"}, &o)
	if err != nil || o.maxHold != 9*time.Second || o.slotReload != time.Minute ||
		o.Lease != 2*time.Second || o.PollMax != 200*time.Millisecond ||
		o.Replicas != lock.AllReplicas || o.ReplicaTimeout != 300*time.Millisecond {
		t.Errorf("%+v, %v", o, err)
	}
	if err := apply(map[string]string{"replicas": "2"}, &o); err != nil || o.Replicas != 2 {
		t.Errorf("%+v, %v", o, err)
	}
	for option, want := range map[string]string{
		"lease=2": "not a positive duration", "lease=-1s": "not a positive duration", "replicas=some": "neither a number",
		"replicas=-1": "neither a number", "mode=1": `unknown option "mode"; this lock has lease, poll`, "replica_timeout=": "not a positive",
	} {
		name, value, _ := strings.Cut(option, "=")
		if err := apply(map[string]string{name: value}, &o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

// TestLimitOfHolds: a lock renews a hold no longer than option max_hold, and a lock without such a limit refuses it.
func TestLimitOfHolds(t *testing.T) {
	for _, s := range slices.Concat([]client.Spec{reentrantSpec(), redlockSpec()}, kindSpecs()) {
		limits := s.Can.Has(promise.Watchdog) && !s.Can.Has(promise.MultiKey)
		if err := s.CheckOptions(map[string]string{"max_hold": "300ms"}); (err == nil) != limits {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// TestShortTimeoutDoesNotRepeat: a lock that gives up a release early does not state that it repeats it.
func TestShortTimeoutDoesNotRepeat(t *testing.T) {
	for timeout, repeats := range map[string]bool{"": true, "1499ms": false, "1500ms": true, "5s": true} {
		options := map[string]string{native.OptionTimeout: timeout}
		if can := canWith(reentrantSpec(), options); can.Has(promise.RetriesRelease1500ms) != repeats ||
			can.Has(promise.RetriesTransientErrors) != repeats {
			t.Errorf("timeout %q: the lock states %s", timeout, can)
		}
	}
}

// TestLongTimeoutDoesNotBackOff: a lock of several keys that may wait for long for a reply does not state that it gives
// back its keys soon.
func TestLongTimeoutDoesNotBackOff(t *testing.T) {
	for _, row := range multiSpecs() {
		for timeout, backsOff := range map[string]bool{"": true, "1s": true, "5s": true, "5001ms": false} {
			if can := canWith(row, map[string]string{native.OptionTimeout: timeout}); can.Has(promise.MultiKeyBacksOff4s) != backsOff {
				t.Errorf("%s, timeout %q: the lock states %s", row.Name, timeout, can)
			}
		}
	}
}
