package faults

import (
	"testing"
	"time"
)

func TestClockDrift(t *testing.T) {
	clockShowsEffect(t, clockDriftSpec, "clock n2 0s 60", time.Second)
}

func TestClockDriftOfARealServer(t *testing.T) { clockEndsLease(t, clockDriftSpec) }
