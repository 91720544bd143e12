package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/simtest"
)

// TestClientGo: the leader election of Kubernetes with the durations of its core clients, 15 s, 10 s and 2 s, and with
// ReleaseOnCancel. A candidate waits for longer than a lease, because it has to see the record unchanged for as long.
func TestClientGo(t *testing.T) {
	klog.SetLogger(klog.Logger{}) // no messages
	long := []string{"duration=60s", "workload.wait=50s"}
	paused := append(slices.Clone(long), "faults[0].for=20s")
	explore(t, clientGoLock(), []expectation{
		{scenario: "leader-resign", set: long},
		{scenario: "leader-killed", set: long},
		{scenario: "leader-cut-off", set: paused, unsafe: true}, // it stops only after it has tried to release its record
		{scenario: "leader-pause", set: paused, unsafe: true},   // it leads on, or releases the record of its successor
	})
}

func clientGoLock() simtest.Lock {
	return simtest.Lock{
		Name: "client-go",
		Can:  promise.Watchdog | promise.ReportsLoss,
		Open: func(s client.Setup, notify func(client.Reply)) (client.Locker, error) {
			// a request of a client of an API server ends with its context, and is not sent again
			once := func(o *redis.Options) { o.MaxRetries, o.ContextTimeoutEnabled = -1, true }
			return elections{newRival(s, once), notify}, nil
		},
		Definite:       definite,
		Code:           code,
		PersistentKeys: func(key string) []string { return []string{key} },
	}
}

// elections is a client: one candidate at a time.
type elections struct {
	*rival
	notify func(client.Reply)
}

// leadership is a hold: an elector that has started to lead.
type leadership struct {
	*record
	resign   context.CancelFunc
	stopped  chan struct{} // closed by OnStoppedLeading
	resigned bool          // before it stopped
}

func (l elections) Acquire(_ context.Context, a client.Acquire) (client.Grant, error) {
	h := &leadership{record: &record{rdb: l.rdbs[0], key: a.Key, owner: a.Owner}, stopped: make(chan struct{})}
	started := make(chan struct{})
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: h.record, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true, Name: a.Key,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(started) },
			OnStoppedLeading: func() { close(h.stopped) },
		},
	})
	if err != nil {
		return client.Grant{}, err
	}
	var ctx context.Context
	ctx, h.resign = context.WithCancel(context.Background())
	go e.Run(ctx)
	select {
	case <-started:
	case <-time.After(a.Wait):
		h.resign()
		<-h.stopped
		if h.unknown > 0 {
			return client.Grant{}, errors.New("the wait is over, and the record may have been written")
		}
		return client.Grant{}, errHeld
	}
	l.held[a.Owner] = h
	go func() {
		<-h.stopped
		if !h.resigned {
			l.notify(client.Reply{Event: history.Lost, Key: a.Key, Owner: a.Owner})
		}
	}()
	return client.Grant{}, nil
}

func (l elections) Release(_ context.Context, a client.Hold) (int, error) {
	h, ok := l.held[a.Owner].(*leadership)
	delete(l.held, a.Owner)
	if !ok {
		return 0, client.ErrNotHeld
	}
	select {
	case <-h.stopped:
		return 0, client.ErrNotHeld
	default:
	}
	h.resigned = true
	h.resign()
	<-h.stopped
	if h.holder != "" {
		return 0, errors.New("the record was not released")
	}
	return 0, nil
}

// record is a resourcelock.Interface: as a Lease it has a version, which each write compares and replaces.
type record struct {
	rdb                 *redis.Client
	key, owner, version string
	writes, unknown     int    // all, and those that were not refused
	holder              string // in the last write that has succeeded; "": none since a resignation
}

var leases = schema.GroupResource{Resource: "leases"} //nolint:gochecknoglobals // never changed

const requestTimeout = 5 * time.Second // as resourcelock.NewFromKubeconfig sets it: half of RenewDeadline

func (r *record) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	fields, err := r.rdb.HMGet(ctx, r.key, "record", "version").Result()
	if err != nil {
		return nil, nil, err
	}
	text, found := fields[0].(string)
	if !found {
		return nil, nil, kerrors.NewNotFound(leases, r.key)
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.writes++
	r.unknown++
	version := fmt.Sprint(r.owner, "-", r.writes)
	done, err := r.rdb.Eval(ctx, replace, []string{r.key}, r.version, version, text).Int()
	switch {
	case err != nil:
		return err
	case done == 0:
		r.unknown--
		return kerrors.NewConflict(leases, r.key, errors.New("it has another version"))
	}
	r.version, r.holder = version, next.HolderIdentity
	return nil
}

func (r *record) RecordEvent(string) {}
func (r *record) Identity() string   { return r.owner }
func (r *record) Describe() string   { return r.key }
