package checker

import (
	"fmt"
	"time"
)

// at is an instant of the run, for people.
func at(t time.Duration) string {
	if t == never {
		return "the end"
	}
	return fmt.Sprintf("%.3f s", t.Seconds())
}

// long is a length of time, for people.
func long(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
}

// plural is "1 grant" or "3 grants".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// keyName is the name of a key in a sentence.
func lockName(name string) string {
	if name == "" {
		return "the lock"
	}
	return name
}
