package ledger

import (
	"testing"
)

// TestPanicInBackgroundIsRaised: a panic on another goroutine is raised where its result is awaited.
func TestPanicInBackgroundIsRaised(t *testing.T) {
	done := false
	inBackground(func() { done = true })()
	if !done {
		t.Error("it was not waited for")
	}
	defer func() {
		if got := recover(); got != "defect" {
			t.Errorf("recovered %v", got)
		}
	}()
	inBackground(func() { panic("defect") })()
}
