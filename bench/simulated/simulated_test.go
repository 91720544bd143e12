// Package simulated explores other Go lock libraries on simulated servers in virtual time, with many seeds.
package simulated

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/simtest"
)

//nolint:gochecknoglobals // flags are
var (
	seeds = flag.Int("seeds", 5, "runs of each scenario, with the seeds from -first")
	first = flag.Uint64("first", 1, "first seed")
	keep  = flag.String("keep", "", "directory for the first unsafe and the first inconclusive run")
)

// expectation is how the runs of a scenario end.
type expectation struct {
	scenario string
	set      []string // changes of the scenario
	unsafe   bool     // at least one run is; otherwise none
}

// silent keeps go-redis from logging each connection that a fault refuses.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func explore(t *testing.T, lock simtest.Lock, all []expectation) {
	redis.SetLogger(silent{})
	for _, e := range all {
		t.Run(e.scenario, func(t *testing.T) {
			began := time.Now()
			r := simtest.Run(t, simtest.Config{Scenario: e.scenario, Set: e.set, Seeds: *seeds, First: *first, Out: *keep}, lock)
			t.Logf("%d safe, %d unsafe, %d inconclusive in %.1f s: %s", r.Safe, r.Unsafe, r.Inconclusive,
				time.Since(began).Seconds(), r.Sentence)
			if e.unsafe != (r.Unsafe > 0) {
				t.Errorf("%d of %d runs were unsafe, the first with seed %d: %s", r.Unsafe, *seeds, r.Seed, r.Sentence)
			}
		})
	}
}

// rival has the common parts of the clients of all libraries. A client of a run requests one thing at a time.
type rival struct {
	rdbs []*redis.Client
	rand *rand.Rand
	held map[string]any // by owner
}

func newRival(s client.Setup, change ...func(*redis.Options)) *rival {
	r := &rival{rand: newRand(s.Seed), held: make(map[string]any)}
	for _, addr := range s.Endpoints.Addrs {
		o := redis.Options{
			Addr: addr, Dialer: s.Dial, Password: s.Endpoints.Password,
			// its probe would be a request more
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		for _, f := range change {
			f(&o)
		}
		r.rdbs = append(r.rdbs, redis.NewClient(&o))
	}
	return r
}

func (r *rival) Renew(context.Context, client.Hold, time.Duration) (client.Grant, error) {
	return client.Grant{}, client.ErrNotHeld
}

func (r *rival) Close(context.Context) (err error) {
	for _, rdb := range r.rdbs {
		err = errors.Join(err, rdb.Close())
	}
	return err
}

var errHeld = errors.New("held by another")

func definite(err error) bool { return errors.Is(err, errHeld) || errors.Is(err, client.ErrNotHeld) }

func code(err error) string {
	if errors.Is(err, errHeld) {
		return "held"
	}
	return "error"
}
