package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicas sends scripts and then waits, on the same connection, until enough replicas have their writes: WAIT is about
// its own connection only.
type replicas struct {
	rdb     redis.UniversalClient
	need    int // negative: all that are connected, at least one
	timeout time.Duration

	mu        sync.Mutex
	importing []*redis.Client // of masters to which slots migrate; go-redis has no client for an address
	closed    bool
}

// close ends the connections to importing masters.
func (r *replicas) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.importing {
		_ = c.Close()
	}
	r.importing, r.closed = nil, true
}

// send is the send function of a pipe. A grant that too few replicas have comes with an error of the outcome
// underReplicated.
func (r *replicas) send(ctx context.Context, calls []Call) []Answer {
	cluster, ok := r.rdb.(*redis.ClusterClient)
	if !ok {
		if one, ok := r.rdb.(*redis.Client); ok {
			return r.sendOn(ctx, one, calls, false)
		}
		return refuse(calls, fmt.Errorf("%T has no connection of its own to wait on: give a client or "+
			"a cluster client", r.rdb))
	}
	out := make([]Answer, 0, len(calls))
	for _, c := range calls {
		master, err := cluster.MasterForKey(ctx, c.Key())
		if err != nil {
			out = append(out, Answer{Err: &Error{Outcome: NotExecuted, Err: err}})
			continue
		}
		a := r.sendOn(ctx, master, []Call{c}, false)[0]
		if addr, asked := redis.IsAskError(a.Err); asked {
			a = r.sendOn(ctx, r.importer(cluster, master, addr), []Call{c}, true)[0]
		}
		if a.Err != nil && redis.HasErrorPrefix(a.Err, "MOVED") {
			cluster.ReloadState(ctx)
		}
		out = append(out, a)
	}
	return out
}

// importer is the client of the master at addr, to which a slot migrates (ASK). It has the options of another master.
func (r *replicas) importer(cluster *redis.ClusterClient, other *redis.Client, addr string) *redis.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.importing {
		if c.Options().Addr == addr {
			return c
		}
	}
	o := optionsLike(other)
	o.Addr, o.NodeAddress = addr, addr
	c := cluster.Options().NewClient(o)
	if r.importing = append(r.importing, c); r.closed {
		_ = c.Close()
	}
	return c
}

// refuse is the answer to calls that are not sent.
func refuse(calls []Call, why error) []Answer {
	out := make([]Answer, len(calls))
	for i := range out {
		out[i].Err = &Error{Outcome: Rejected, Err: why}
	}
	return out
}

// sendOn runs calls as sendAll does, and then waits for replicas if a call wrote something.
func (r *replicas) sendOn(ctx context.Context, rdb *redis.Client, calls []Call, asking bool) []Answer {
	conn := rdb.Conn()
	defer conn.Close()
	out := sendAll(ctx, conn, calls, asking)
	wrote := false
	for _, a := range out {
		wrote = wrote || a.granted()
	}
	if !wrote {
		return out
	}
	if err := r.wait(ctx, conn); err != nil {
		for i, a := range out {
			if a.granted() {
				out[i].Err = &Error{UnderReplicated, TooFewReplicas, err}
			}
		}
	}
	return out
}

// wait waits until enough replicas have the writes of conn.
func (r *replicas) wait(ctx context.Context, conn *redis.Conn) error {
	need := r.need
	if need < 0 {
		// Each time: which were connected earlier does not matter.
		role, err := conn.Do(ctx, "ROLE").Slice()
		if err != nil {
			return fmt.Errorf("find out which there are: %w", err)
		}
		list, _ := role[len(role)-1].([]any)
		need = max(len(list), 1)
		if len(list) == 0 {
			return errors.New("none is connected")
		}
	}
	acks, err := conn.Wait(ctx, need, r.timeout).Result()
	switch {
	case err != nil:
		return fmt.Errorf("wait for them: %w", err)
	case int(acks) < need:
		return fmt.Errorf("%d of %d within %v", acks, need, r.timeout)
	}
	return nil
}

// granted reports whether the script has acquired or changed its lock.
func (a Answer) granted() bool {
	if a.Err != nil {
		return false
	}
	r, err := Decode(a.Value, 0)
	return err == nil && r.Code == CodeOK
}
