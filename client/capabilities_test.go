package client

import (
	"strings"
	"testing"
)

// TestCommon: what one lock cannot do, the locks of a run cannot do together; that one of them has no lease is true of
// the run.
func TestCommon(t *testing.T) {
	can := Common(Capabilities{CanTry, Wakes, CanRenew}, Capabilities{Wakes, Unleased, CanTry}, Capabilities{CanTry, Wakes, Fair})
	for want, names := range map[bool]Capabilities{true: {CanTry, Wakes, Unleased}, false: {CanRenew, Fair}} {
		for _, name := range names {
			if can.Has(name) != want {
				t.Errorf("%s: %v, want %v", name, can.Has(name), want)
			}
		}
	}
	if len(can) != 3 {
		t.Errorf("%s: want each capability once", can)
	}
	if can := Common(); can != nil {
		t.Errorf("%s without locks", can)
	}
}

// A misspelled capability is refused.
func TestUnknownCapability(t *testing.T) {
	if err := AllCapabilities().Check(); err != nil {
		t.Error(err)
	}
	err := Capabilities{Reentrant, "watchdgo"}.Check()
	if err == nil || !strings.Contains(err.Error(), `"watchdgo"`) {
		t.Errorf("%v", err)
	}
}
