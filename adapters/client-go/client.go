//go:build ignore

// client-go: the leader election of Kubernetes, over a record in Redis that is compared and set.

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() { serve(open) }

type library struct {
	rdb   redis.UniversalClient
	lease time.Duration // of a request without one
}

// open connects as a client of an API server does: a request without a reply ends, and is not sent again.
func open(e endpoints) locker {
	lease, _ := time.ParseDuration(e.Options["lease"])
	o := redis.UniversalOptions{Addrs: e.Addrs, Password: e.Password, Dialer: e.dial, MaxRetries: -1,
		ContextTimeoutEnabled: true}
	if e.Kind == "sentinel" {
		o.Addrs, o.MasterName, o.SentinelPassword = e.Sentinels, e.MasterName, e.Password
	}
	return library{redis.NewUniversalClient(&o), cmp.Or(lease, 15*time.Second)}
}

func (library) can() []string { return []string{"watchdog", "reports-loss"} }

// leadership is a hold: a leader elector that has started to lead.
type leadership struct {
	record  *record
	resign  context.CancelFunc
	stopped chan struct{} // closed by OnStoppedLeading
}

func (l *leadership) lost() <-chan struct{} { return l.stopped }

// acquire campaigns with the library's ratios of 15 s, 10 s and 2 s. Each campaign has an identity of its own, as each
// process of a controller has.
func (l library) acquire(ctx context.Context, key string, lease, wait time.Duration) (any, *promise, error) {
	lease = cmp.Or(lease, l.lease)
	lease = (lease + time.Second - 1).Truncate(time.Second) // the record has whole seconds
	deadline := lease * 10 / 15
	started, hold := make(chan struct{}), &leadership{stopped: make(chan struct{})}
	hold.record = &record{rdb: l.rdb, key: key, identity: rand.Text(), timeout: max(time.Second, deadline/2)}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: hold.record, LeaseDuration: lease, RenewDeadline: deadline, RetryPeriod: lease * 2 / 15,
		ReleaseOnCancel: true, Name: key,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(started) },
			OnStoppedLeading: func() { close(hold.stopped) },
		},
	})
	if err != nil {
		return nil, nil, failed{"refused", err}
	}
	ctx, hold.resign = context.WithCancel(ctx)
	go e.Run(ctx)
	select {
	case <-started:
		return hold, nil, nil
	case <-time.After(wait):
	}
	hold.resign()
	<-hold.stopped
	if hold.record.unknown > 0 {
		return nil, nil, errors.New("the wait is over, and the record may have been written")
	}
	return nil, nil, failed{"held", errors.New("the wait is over")}
}

func (library) renew(context.Context, any, time.Duration) (*promise, error) {
	return nil, failed{"unknown-op", errors.New("no renewal by hand")}
}

// release resigns. The library does not return the error of the last request.
func (library) release(_ context.Context, lock any) error {
	hold := lock.(*leadership)
	select {
	case <-hold.stopped:
		return failed{"lost", errors.New("it has stopped leading")}
	default:
	}
	hold.resign()
	<-hold.stopped
	if hold.record.holder != "" {
		return errors.New("the record was not released")
	}
	return nil
}

// record is a resourcelock.Interface: like a LeaseLock it has a record with a version, which each write compares and
// replaces. One elector uses it, one call at a time.
type record struct {
	rdb                    redis.UniversalClient
	key, identity, version string
	timeout                time.Duration // of a request: as resourcelock.NewFromKubeconfig sets it
	unknown                int           // writes that were not refused
	holder                 string        // in the last write that has succeeded; "": none since a resignation
}

func (r *record) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	fields, err := r.rdb.HMGet(ctx, r.key, "record", "version").Result()
	if err != nil {
		return nil, nil, err
	}
	text, found := fields[0].(string)
	if !found {
		return nil, nil, kerrors.NewNotFound(schema.GroupResource{Resource: "leases"}, r.key)
	}
	r.version = fields[1].(string)
	var held resourcelock.LeaderElectionRecord
	err = json.Unmarshal([]byte(text), &held)
	return &held, []byte(text), err
}

func (r *record) Create(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	r.version = ""
	return r.Update(ctx, next)
}

const replace = `
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1`

func (r *record) Update(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	version := rand.Text()
	r.unknown++
	done, err := r.rdb.Eval(ctx, replace, []string{r.key}, r.version, version, text).Int()
	switch {
	case err != nil:
		return err
	case done == 0:
		r.unknown--
		return kerrors.NewConflict(schema.GroupResource{Resource: "leases"}, r.key, errors.New("it has another version"))
	}
	r.version, r.holder = version, next.HolderIdentity
	return nil
}

func (r *record) RecordEvent(string) {}
func (r *record) Identity() string   { return r.identity }
func (r *record) Describe() string   { return r.key }
