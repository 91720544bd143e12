package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// MonotonicNow is CLOCK_MONOTONIC in nanoseconds. All processes of one machine read the same clock, so
// the harness can place a validity computed by a client in another process exactly on its own time line,
// however long the reply took.
func MonotonicNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// Age is how long before now, on the clock of MonoNS, a notice was sent; 0 if that is unknown or less than a
// millisecond. Notices are not older than since, when the harness began to listen: an older stamp is of another clock.
func (r Reply) Age(since, now int64) time.Duration {
	if age := time.Duration(now - r.MonoNS); r.MonoNS > since && r.MonoNS <= now && age >= time.Millisecond {
		return age
	}
	return 0
}

// ValidFor returns how much of the validity in r is left. took is the time since the request was sent (0: r is a
// notice), now is the clock that MonoNS was read from. Where MonoNS is missing, or lies before the request or in
// the future (another clock), the validity counts from the sending of the request, the earliest possible instant;
// a notice without a usable MonoNS promises nothing, because its age is unknown. Zero means that no validity
// was promised; the result is negative if it has ended.
func (r Reply) ValidFor(took time.Duration, now int64) time.Duration {
	known := r.MonoNS > 0 && r.MonoNS <= now
	if r.ValidMS == 0 || took == 0 && !known {
		return 0
	}
	age := took
	if known {
		age = min(time.Duration(now-r.MonoNS), century)
	}
	if took > 0 {
		age = min(age, took)
	}
	if left := millis(r.ValidMS) - age; left != 0 {
		return left
	}
	return -1 // ends now; zero would mean that none was promised
}
