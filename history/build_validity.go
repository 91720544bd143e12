package history

import "time"

// expiredError is by how much a validity has to end before its request, to be called expired: client and harness may
// round, and stamp the validity an instant later.
const expiredError = 5 * time.Millisecond

// expired reports whether the validity in a reply had ended before the client replied. The client says so itself (the
// reply has an age), or the validity had ended even before the request, which no slow reply explains.
func expired(s *Span, e numbered) bool {
	v := e.Value
	if v.Age > 0 {
		return v.Valid < 0 && v.Valid+v.Age <= 0
	}
	return v.Valid < s.Call-e.time-expiredError
}

// validity returns the end of a validity that starts at t. 0 stays 0 (none was promised); a validity
// that had ended before t ends after 0.
func validity(t, valid time.Duration) time.Duration {
	if valid == 0 {
		return 0
	}
	if valid > 0 && t > Infinity-valid {
		return Infinity
	}
	return max(1, t+valid)
}
