package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/promise"
)

// judgingFlags give the checkers facts that a history does not contain.
type judgingFlags struct {
	properties        []string
	fair              bool
	maxBypass         int
	queueDelay        time.Duration
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
		"judge only property `NAME` (and exercised: whether the run tested enough); may be repeated")
	flags.DurationVar(&f.clockError, "clock-error", 0,
		"error of the clock that recorded the times; shorter overlaps are not counted as violations")
	flags.DurationVar(&f.slack, "slack", time.Second,
		"how late the lock may wake a waiter, end a lease, report a loss or find its servers again; if not given, a run "+
			"on a busy machine has more")
	flags.IntVar(&f.mayBeDown, "may-be-down", 0,
		"number of servers that may be down while the lock must still be live (default: from run.json, else 0)")
	flags.StringArrayVar(&f.permits, "permits", nil,
		"number of permits of a key, as `KEY=N`, or N for all other keys; may be repeated")
	flags.BoolVar(&f.fair, "fair", false, "the lock promises first come, first served: judge the order of grants")
	flags.IntVar(&f.maxBypass, "max-bypass", 0, "with --fair: how many later requests may be granted before a waiter")
	flags.DurationVar(&f.queueDelay, "queue-delay", 100*time.Millisecond,
		"with --fair: how long after its request a waiter is certain to be in the wait queue")
	flags.DurationVar(&f.search, "search", 5*time.Second, "time limit of the linearizability search; 0: no search")
	flags.StringVar(&f.lockKind, "lock-kind", "",
		"`KIND` of lock: "+strings.Join(lockKindNames(), ", ")+" (default: inferred from the history)")
	_ = c.RegisterFlagCompletionFunc("lock-kind", completeNames(lockKindNames))
	_ = c.RegisterFlagCompletionFunc("property", completeNames(propertyNames))
}

// options are the options of the checkers; the run's are the defaults of flags.
func (f *judgingFlags) options(ofRun checker.Options) (checker.Options, error) {
	o := ofRun
	o.SearchCommand, o.ClockError, o.Search = searchCommand(), f.clockError, f.search
	if f.flags.Changed("slack") {
		o.Slack = f.slack
	}
	o.MaxBypass = f.maxBypass
	if f.fair {
		o.Promises, o.QueueDelay = o.Promises.With(promise.Fair), f.queueDelay
	}
	if f.flags.Changed("may-be-down") {
		o.MayBeDown = f.mayBeDown
	}
	if f.search == 0 {
		o.Search = -1
	}
	for _, name := range f.properties {
		if err := knownProperty(name); err != nil {
			return o, err
		}
		o.Only = append(o.Only, checker.Property(name))
	}
	if err := known("--lock-kind: unknown kind", f.lockKind, lockKindNames()); f.lockKind != "" && err != nil {
		return o, err
	}
	o.LockKind = cmp.Or(checker.LockKind(f.lockKind), o.LockKind)
	if err := f.validate(); err != nil {
		return o, usage(err)
	}
	var err error
	o.Permits, err = permitsOf(f.permits)
	return o, usage(err)
}

// validate refuses values that make no sense.
func (f *judgingFlags) validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"clock-error", f.clockError, 0}, {"slack", f.slack, 1}, {"queue-delay", f.queueDelay, 1}, {"search", f.search, 0}} {
		switch {
		case d.value < 0:
			return fmt.Errorf("--%s %v: must not be negative", d.name, d.value)
		case d.value < d.least:
			return fmt.Errorf("--%s %v: must be positive, such as 500ms", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"may-be-down", f.mayBeDown}, {"max-bypass", f.maxBypass}} {
		if n.value < 0 {
			return fmt.Errorf("--%s %d: must not be negative", n.name, n.value)
		}
	}
	for _, name := range []string{"max-bypass", "queue-delay"} {
		if f.flags.Changed(name) && !f.fair {
			return fmt.Errorf("--%s needs --fair", name)
		}
	}
	return nil
}

func lockKindNames() []string {
	return format.Texts(checker.LockKinds(), func(k checker.LockKind) checker.LockKind { return k })
}

// checkPermits refuses --permits of a key that the history lacks: with a
// misspelled key, the intended one would be judged without its permits.
func (f *judgingFlags) checkPermits(h *history.History) error {
	permits, err := permitsOf(f.permits)
	for key := range permits { // order does not matter: any of them is an error
		if err == nil && key != "" && !slices.Contains(h.Keys, key) {
			err = fmt.Errorf("--permits %s=%d: the history has no such key%s", key, permits[key],
				nearest.Hint(key, h.Keys))
		}
	}
	return usage(err)
}

// permitsOf parses KEY=N, or N for every other key. A key may contain "=".
func permitsOf(values []string) (map[string]int, error) {
	if len(values) == 0 {
		return nil, nil
	}
	permits := make(map[string]int)
	for _, value := range values {
		at := strings.LastIndexByte(value, '=')
		key, number := value[:max(at, 0)], value[at+1:]
		n, err := strconv.ParseInt(number, 10, 32)
		switch {
		case err != nil || n < 1:
			return nil, fmt.Errorf("--permits %s: must be a number from 1 to %d, or KEY=NUMBER", format.ShellWord(value),
				math.MaxInt32)
		case at == 0:
			return nil, fmt.Errorf("--permits %s: no key before the =", format.ShellWord(value))
		}
		if _, twice := permits[key]; twice {
			return nil, fmt.Errorf("--permits %s: given twice", format.ShellWord(value))
		}
		permits[key] = int(n)
	}
	return permits, nil
}

// knownProperty refuses a --property that does not exist.
func knownProperty(name string) error {
	return known("--property: unknown property", name, propertyNames())
}
