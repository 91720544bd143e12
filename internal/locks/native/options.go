package native

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Options of a scenario that several locks have.
const (
	OptionLease   = "lease"   // of holds that request none, renewed by the lock
	OptionSession = "session" // timeout of the session of holds that request no lease; it begins before a request
	OptionTimeout = "timeout" // of releases, and of undoing grants of unknown outcome
)

var ErrNoOptions = errors.New("this lock has no options")

// OptionSkew sets the clocks of clients apart: each is off by a duration drawn from its seed, at most this much, either
// way. It breaks locks that compare clocks of clients; others ignore it.
const OptionSkew = "clock_skew"

// ClockOf is the clock of a client with these options and that seed.
func ClockOf(options map[string]string, seed uint64) (func() time.Time, error) {
	text := options[OptionSkew]
	if text == "" {
		return time.Now, nil
	}
	limit, err := Positive(OptionSkew, text)
	if err != nil {
		return nil, err
	}
	off := time.Duration(rand.New(rand.NewPCG(seed, 2)).Int64N(2*int64(limit))) - limit
	return func() time.Time { return time.Now().Add(off) }, nil
}

// CheckNoOptions is the CheckOptions of a lock without options.
func CheckNoOptions(options map[string]string) error {
	if len(options) > 0 {
		return ErrNoOptions
	}
	return nil
}

// Positive reads an option that is a positive duration.
func Positive(name, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("option %s: %q is not a positive duration such as 5s", name, text)
	}
	return d, nil
}
