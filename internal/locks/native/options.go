package native

import (
	"errors"
	"fmt"
	"time"
)

// Options of a scenario that several locks have.
const (
	OptionLease   = "lease"   // of holds that request none, renewed by the lock
	OptionSession = "session" // timeout of the session of holds that request no lease; it begins before a request
	OptionTimeout = "timeout" // of releases, and of undoing grants of unknown outcome
)

var ErrNoOptions = errors.New("this lock has no options")

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
