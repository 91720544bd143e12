package client

import (
	"time"

	"golang.org/x/sys/unix"
)

// Mono is CLOCK_MONOTONIC in nanoseconds. All processes of one machine read
// the same clock, so a promise made by a client in one process can be placed
// exactly on the time line of the harness in another, however long the answer
// was under way (a stopped client may say "2 s from now" long after it meant it).
func Mono() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// ValidFor is how long a reply's promise still lasts. took is how long ago the
// request was sent (0: this is an event, nothing was asked), now is the clock
// that stamped the promise. A client that does not say when it computed
// valid_ms, or names an instant before the request or in the future (another
// clock), is understood in the way that cannot accuse it wrongly: as if it had
// done so when the request was sent; and an event of that kind promises
// nothing, because nobody knows for how long it was under way. Zero means that
// nothing is promised; a promise that is over is negative.
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
	return -1 // it ends now; zero would say that there was no promise
}
