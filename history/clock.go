package history

import "time"

// longestRun is how long a recorded run may be. A first event after it does not count from the start of a run: its
// time is a wall clock's, such as nanoseconds since 1970.
const longestRun = 10 * 365 * 24 * time.Hour

// clock makes the times of a history relative to its start.
type clock struct {
	begun bool
	start time.Duration // of absolute times: the first; else 0
}

// relative is t since the start of the run, and at most longestRun.
func (c *clock) relative(t time.Duration) time.Duration {
	if !c.begun {
		c.begun = true
		if t > longestRun {
			c.start = t
		}
	}
	if t < c.start {
		return t - c.start // Builder reports it
	}
	return min(t-c.start, longestRun)
}
