package locks

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
)

// Options of a scenario for the locks of package lock.
const (
	optionPoll           = "poll"            // longest sleep of a waiter before it retries
	optionReplicas       = "replicas"        // how many must acknowledge a grant: a number, or all
	optionReplicaTimeout = "replica_timeout" // how long to wait for them
	optionMaxHold        = "max_hold"        // for how long the watchdog renews a hold
	optionSlotReload     = "slot_reload"     // how often a cluster client looks up the slots unless redirected
	optionReentry        = "reentry"         // refused: an owner must not hold the lock twice
	optionCalls          = "calls"           // varied: acquires in all forms of the API, see callForm
)

// lockOptions are the options of a scenario.
type lockOptions struct {
	lock.Options
	maxHold    time.Duration // 0: no limit
	slotReload time.Duration // 0: defaultSlotReload
	refuses    bool          // a re-entry
	varied     bool          // the forms of acquires
}

// checkOptions is the CheckOptions of the locks of package lock.
func checkOptions(options map[string]string) error { return apply(options, &lockOptions{}) }

// checkUnlimitedOptions is that of locks for whose holds no limit can be set, and whose acquires have one form.
func checkUnlimitedOptions(options map[string]string) error {
	var o lockOptions
	err := apply(options, &o)
	switch {
	case err == nil && o.maxHold > 0:
		return fmt.Errorf("option %s: this lock has no such limit", optionMaxHold)
	case err == nil && o.varied:
		return fmt.Errorf("option %s: acquires of this lock have one form", optionCalls)
	}
	return err
}

// apply copies a scenario's options into o. An unknown one is an error: ignored, it
// would make the scenario claim what it does not test.
func apply(options map[string]string, o *lockOptions) (err error) {
	for name, text := range options { // order does not matter: they are independent
		switch name {
		case native.OptionLease:
			o.Lease, err = native.Positive(name, text)
		case optionPoll:
			o.PollMax, err = native.Positive(name, text)
		case native.OptionTimeout:
			o.Timeout, err = native.Positive(name, text)
		case optionReplicaTimeout:
			o.ReplicaTimeout, err = native.Positive(name, text)
		case optionMaxHold:
			o.maxHold, err = native.Positive(name, text)
		case optionSlotReload:
			o.slotReload, err = native.Positive(name, text)
		case optionReplicas:
			o.Replicas, err = replicas(text)
		case optionReentry:
			if o.refuses = text == reentryRefused; !o.refuses {
				err = onlyValue(name, text, reentryRefused)
			}
		case optionCalls:
			if o.varied = text == callsVaried; !o.varied {
				err = onlyValue(name, text, callsVaried)
			}
		default:
			err = fmt.Errorf("unknown option %q; this lock has %s, %s, %s, %s, %s, %s, %s, %s and %s", name,
				native.OptionLease, optionPoll, native.OptionTimeout, optionReplicas, optionReplicaTimeout, optionMaxHold,
				optionSlotReload, optionReentry, optionCalls)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// onlyValue refuses another value than the only one of an option.
func onlyValue(name, got, only string) error {
	return fmt.Errorf("option %s: got %q; the only value is %s, or omit the option", name, got, only)
}

// The values of optionReentry and optionCalls.
const (
	reentryRefused = "refused"
	callsVaried    = "varied"
)

// withoutReentry returns rows of which those that no owner can hold twice refuse optionReentry.
func withoutReentry(rows []client.Spec) []client.Spec {
	for i, row := range rows {
		if row.CheckOptions == nil || row.Can.Has(promise.Reentrant) {
			continue
		}
		rows[i].CheckOptions = func(options map[string]string) error {
			if _, given := options[optionReentry]; given {
				return fmt.Errorf("option %s: no owner can hold this lock twice", optionReentry)
			}
			return row.CheckOptions(options)
		}
	}
	return rows
}

// repeatsFor is for how long a lock that states [promise.RetriesRelease1500ms] or [promise.RetriesTransientErrors]
// sends a release again.
const repeatsFor = 1500 * time.Millisecond

// backsOffWithin is up to which value of OptionTimeout a lock states [promise.MultiKeyBacksOff4s]: while a server does
// not reply, it keeps keys for that much longer.
const backsOffWithin = 5 * time.Second

// canWith returns the promises of the lock with these options. A lock that does not check options has the same promises
// with all of them.
func canWith(row client.Spec, options map[string]string) promise.Set {
	can := row.Can
	if row.CheckOptions == nil {
		return can
	}
	if d, err := time.ParseDuration(options[native.OptionTimeout]); err == nil {
		if d < repeatsFor {
			can = can.Without(promise.RetriesRelease1500ms | promise.RetriesTransientErrors)
		}
		if d > backsOffWithin {
			can = can.Without(promise.MultiKeyBacksOff4s)
		}
	}
	if n, err := replicas(options[optionReplicas]); err == nil && n != 0 {
		can = can.With(promise.AwaitsReplicas)
	}
	// Too few replicas end an acquire, and so does the unknown outcome of one of two that are made together.
	if options[optionReplicas] != "" || options[optionCalls] == callsVaried {
		can = can.Without(promise.RetriesTransientErrors)
	}
	if options[optionReentry] == reentryRefused {
		can = can.Without(promise.Reentrant | promise.Downgrade | promise.RefusesUpgrade).With(promise.RefusesReentry)
	}
	return can
}

func replicas(text string) (int, error) {
	if text == "all" {
		return lock.AllReplicas, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("option %s: %q is neither a number of replicas nor \"all\"", optionReplicas, text)
	}
	return n, nil
}
