package client

import (
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/lock"
)

// Options of a scenario that package lock's locks understand.
const (
	optionLease          = "lease"           // of holds that ask for none, renewed by the watchdog
	optionPoll           = "poll"            // the longest that a waiter sleeps before it asks again
	optionReplicas       = "replicas"        // that must have a grant: a number, or all
	optionReplicaTimeout = "replica_timeout" // for how long they are waited for
)

// apply puts a scenario's options into o. One that is not known is an error: a
// scenario that says more than it does would be believed.
func apply(options map[string]string, o *lock.Options) (err error) {
	for name, text := range options { // order does not matter: each is for itself
		switch name {
		case optionLease:
			o.Lease, err = positive(name, text)
		case optionPoll:
			o.PollMax, err = positive(name, text)
		case optionReplicaTimeout:
			o.ReplicaTimeout, err = positive(name, text)
		case optionReplicas:
			o.Replicas, err = replicas(text)
		default:
			err = fmt.Errorf("no option of this lock is called %q; there is: %s, %s, %s, %s",
				name, optionLease, optionPoll, optionReplicas, optionReplicaTimeout)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func positive(name, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("option %s: %q is not a positive duration such as 5s", name, text)
	}
	return d, nil
}

func replicas(text string) (int, error) {
	if text == "all" {
		return lock.AllReplicas, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("option %s: %q is not a number of replicas, nor all", optionReplicas, text)
	}
	return n, nil
}
