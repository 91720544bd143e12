package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/nearest"
)

// judgingFlags are the flags that tell the checkers what a history does not say.
type judgingFlags struct {
	properties        []string
	fair              bool
	maxBypass         int
	inLine            time.Duration
	clockError, slack time.Duration
	mayBeDown         int
	permits           []string
	search            time.Duration
	lockKind          string
	flags             interface{ Changed(string) bool }
}

func (f *judgingFlags) add(c *cobra.Command) {
	flags := c.Flags()
	f.flags = flags
	flags.StringArrayVar(&f.properties, "property", nil,
		"judge only this property, and whether the run tested anything; may be repeated")
	flags.DurationVar(&f.clockError, "clock-error", 0,
		"error of the clock that recorded the times: overlaps that are not longer are not certain")
	flags.DurationVar(&f.slack, "slack", time.Second,
		"how long the lock may take to wake a waiter, end a lease, tell a loss, find its servers again")
	flags.IntVar(&f.mayBeDown, "may-be-down", 0,
		"servers that may be away at once without excusing the lock (default: from run.json, else none)")
	flags.StringArrayVar(&f.permits, "permits", nil,
		"permits that a key has in all, such as db=10, or 10 for every key that is not named; may be repeated")
	flags.BoolVar(&f.fair, "fair", false, "the lock promises an order: judge who was overtaken")
	flags.IntVar(&f.maxBypass, "max-bypass", 0, "with --fair: later comers that may be granted the lock before a waiter")
	flags.DurationVar(&f.inLine, "in-line", 100*time.Millisecond,
		"with --fair: how long after it asked a waiter's place in the line is certain")
	flags.DurationVar(&f.search, "search", 5*time.Second, "longest search for a legal order (linearizable); 0: none")
	flags.StringVar(&f.lockKind, "lock-kind", "",
		"what the lock is meant to be: "+strings.Join(lockKindNames(), ", ")+" (default: whatever the history shows)")
	_ = c.RegisterFlagCompletionFunc("lock-kind", completeNames(lockKindNames))
	_ = c.RegisterFlagCompletionFunc("property", completeNames(propertyNames))
}

// options are the checkers' options; downByRun is how many servers a run can bear to lose.
func (f *judgingFlags) options(downByRun int) (checker.Options, error) {
	o := checker.Options{
		SearchCommand: searchCommand(), ClockError: f.clockError, Slack: f.slack, MayBeDown: downByRun,
		Fair: f.fair, MaxBypass: f.maxBypass, InLine: f.inLine, Search: f.search,
	}
	if f.flags.Changed("may-be-down") {
		o.MayBeDown = f.mayBeDown
	}
	if f.search == 0 {
		o.Search = -1
	}
	for _, name := range f.properties {
		if !slices.Contains(propertyNames(), name) {
			return o, usage(fmt.Errorf("no property is called %q%s", name, nearest.Hint(name, propertyNames())))
		}
		o.Only = append(o.Only, checker.Property(name))
	}
	if f.lockKind != "" && !slices.Contains(lockKindNames(), f.lockKind) {
		return o, usage(fmt.Errorf("--lock-kind: no kind of lock is called %q%s", f.lockKind,
			nearest.Hint(f.lockKind, lockKindNames())))
	}
	o.LockKind = checker.LockKind(f.lockKind)
	if err := f.sensible(); err != nil {
		return o, usage(err)
	}
	var err error
	o.Permits, err = permitsOf(f.permits)
	return o, usage(err)
}

// sensible refuses what cannot be meant.
func (f *judgingFlags) sensible() error {
	for _, d := range []struct {
		name string
		is   time.Duration
		from time.Duration
	}{{"clock-error", f.clockError, 0}, {"slack", f.slack, 1}, {"in-line", f.inLine, 1}, {"search", f.search, 0}} {
		switch {
		case d.is < 0:
			return fmt.Errorf("--%s %v: a time cannot be negative", d.name, d.is)
		case d.is < d.from:
			return fmt.Errorf("--%s %v: it takes a time longer than 0, such as 500ms", d.name, d.is)
		}
	}
	for _, n := range []struct {
		name string
		is   int
	}{{"may-be-down", f.mayBeDown}, {"max-bypass", f.maxBypass}} {
		if n.is < 0 {
			return fmt.Errorf("--%s %d: it takes a whole number from 0", n.name, n.is)
		}
	}
	for _, name := range []string{"max-bypass", "in-line"} {
		if f.flags.Changed(name) && !f.fair {
			return fmt.Errorf("--%s says how an order is judged, and without --fair none is", name)
		}
	}
	return nil
}

func lockKindNames() (names []string) {
	for _, kind := range checker.LockKinds() {
		names = append(names, string(kind))
	}
	return names
}

// known refuses permits of a key that is not in the history: a slip of the pen
// would leave the key that was meant unjudged.
func (f *judgingFlags) known(h *history.History) error {
	permits, err := permitsOf(f.permits)
	for key := range permits { // order does not matter: any of them is an error
		if err == nil && key != "" && !slices.Contains(h.Keys, key) {
			err = fmt.Errorf("--permits %s=%d: the history has no key of that name%s", key, permits[key],
				nearest.Hint(key, h.Keys))
		}
	}
	return usage(err)
}

// permitsOf reads KEY=N, or N for every key; a key may have = in its name.
func permitsOf(words []string) (map[string]int, error) {
	if len(words) == 0 {
		return nil, nil
	}
	permits := make(map[string]int)
	for _, word := range words {
		at := strings.LastIndexByte(word, '=')
		key, number := word[:max(at, 0)], word[at+1:]
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil || n < 1 || n > math.MaxInt32:
			return nil, fmt.Errorf("--permits %s: want a number from 1 to %d, or KEY=NUMBER", shellQuote(word), math.MaxInt32)
		case at == 0:
			return nil, fmt.Errorf("--permits %s: there is no key before the =", shellQuote(word))
		}
		if _, twice := permits[key]; twice {
			return nil, fmt.Errorf("--permits %s: it was told before", shellQuote(word))
		}
		permits[key] = int(n)
	}
	return permits, nil
}
