package locks

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/lock"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
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

// testedOptions are the options that generated scenarios draw.
func testedOptions() []client.Option {
	return []client.Option{
		{Name: native.OptionLease, Share: 80, Values: []string{"400ms", "1s", "1s", "2s", "4s", "9s"}},
		{Name: optionPoll, Share: 80, Values: []string{"50ms", "200ms", "500ms", "2s", "20s", "20s"}},
		{Name: native.OptionTimeout, Share: 60, Values: []string{"200ms", "300ms", "600ms", "1500ms", "1500ms", "4s"}},
		{Name: optionReplicas, Share: 40, Values: []string{"1", "all"},
			Topologies: []string{topology.Replicated, topology.Sentinel, topology.Sharded}},
		{Name: optionSlotReload, Share: 20, Values: []string{"60s"}, Topologies: []string{topology.Sharded}},
		{Name: optionMaxHold, Share: 5, Values: []string{"1500ms"}},
		{Name: optionReentry, Share: 15, Values: []string{reentryRefused}},
		{Name: optionCalls, Share: 15, Values: []string{callsVaried}},
	}
}

// checkOptions is the CheckOptions of the locks of package lock.
func checkOptions(options map[string]string) error { return apply(options, &lockOptions{}) }

// checkUnlimitedOptions checks the options of locks for whose holds no limit can be set, and whose acquires have one
// form.
func checkUnlimitedOptions(options map[string]string) error {
	var o lockOptions
	switch err := apply(options, &o); {
	case err != nil:
		return err
	case o.maxHold > 0:
		return fmt.Errorf("option %s: this lock has no such limit", optionMaxHold)
	case o.varied:
		return fmt.Errorf("option %s: acquires of this lock have one form", optionCalls)
	}
	return nil
}

// apply copies a scenario's options into o. An unknown one is an error: if it were ignored, the scenario would claim an
// untested option.
func apply(options map[string]string, o *lockOptions) (err error) {
	durations := map[string]*time.Duration{
		native.OptionLease: &o.Lease, optionPoll: &o.PollMax, native.OptionTimeout: &o.Timeout,
		optionReplicaTimeout: &o.ReplicaTimeout, optionMaxHold: &o.maxHold, optionSlotReload: &o.slotReload,
	}
	for name, text := range options { // order does not matter: they are independent
		switch d := durations[name]; {
		case d != nil:
			*d, err = native.Positive(name, text)
		case name == optionReplicas:
			o.Replicas, err = replicas(text)
		case name == optionReentry:
			o.refuses, err = true, onlyValue(name, text, reentryRefused)
		case name == optionCalls:
			o.varied, err = true, onlyValue(name, text, callsVaried)
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
	if got == only {
		return nil
	}
	return fmt.Errorf("option %s: got %q; the only value is %s, or omit the option", name, got, only)
}

const reentryRefused, callsVaried = "refused", "varied" // the values of optionReentry and optionCalls

// withoutReentry returns rows in which locks that no owner can hold twice refuse optionReentry.
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
