package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// AllReplicas is for [Options].Replicas: every replica that is connected at the
// moment of the grant, and at least one.
const AllReplicas = -1

// replicas sends scripts and then waits, on the same connection, until as many
// replicas have what they wrote: WAIT counts for its own connection only.
type replicas struct {
	rdb     redis.UniversalClient
	need    int // or AllReplicas
	timeout time.Duration
}

// send is a pipe's. A grant that too few replicas have comes with an error of
// the fate unsafe.
func (r *replicas) send(ctx context.Context, calls []call) []answer {
	cluster, is := r.rdb.(*redis.ClusterClient)
	if !is {
		if one, is := r.rdb.(*redis.Client); is {
			return r.sendOn(ctx, one, calls)
		}
		return refuse(calls, fmt.Errorf("%T has no connection of its own to wait on: give a client or "+
			"a cluster client", r.rdb))
	}
	out := make([]answer, 0, len(calls))
	for _, c := range calls {
		master, err := cluster.MasterForKey(ctx, c.key())
		if err != nil {
			out = append(out, answer{err: &requestError{notExecuted, err}})
			continue
		}
		a := r.sendOn(ctx, master, []call{c})[0]
		if a.err != nil && redis.HasErrorPrefix(a.err, "MOVED") {
			cluster.ReloadState(ctx)
		}
		out = append(out, a)
	}
	return out
}

func refuse(calls []call, why error) []answer {
	out := make([]answer, len(calls))
	for i := range out {
		out[i].err = &requestError{rejected, why}
	}
	return out
}

func (r *replicas) sendOn(ctx context.Context, rdb *redis.Client, calls []call) []answer {
	conn := rdb.Conn()
	defer conn.Close()
	out := sendAll(ctx, conn, calls)
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
				out[i].err = &requestError{underReplicated, err}
			}
		}
	}
	return out
}

// wait asks how many replicas have what was written on conn.
func (r *replicas) wait(ctx context.Context, conn *redis.Conn) error {
	need := r.need
	if need == AllReplicas {
		// Asked each time: what was connected a while ago says nothing.
		role, err := conn.Do(ctx, "ROLE").Slice()
		if err != nil {
			return fmt.Errorf("%w: ask which there are: %w", ErrTooFewReplicas, err)
		}
		list, _ := role[len(role)-1].([]any)
		need = max(len(list), 1)
		if len(list) == 0 {
			return fmt.Errorf("%w: none is connected", ErrTooFewReplicas)
		}
	}
	acks, err := conn.Wait(ctx, need, r.timeout).Result()
	switch {
	case err != nil:
		return fmt.Errorf("%w: wait for them: %w", ErrTooFewReplicas, err)
	case int(acks) < need:
		return fmt.Errorf("%w: %d of %d within %v", ErrTooFewReplicas, acks, need, r.timeout)
	}
	return nil
}

// granted is whether an answer of a script that takes a lock says that it was taken.
func (a answer) granted() bool {
	if a.err != nil {
		return false
	}
	switch v := a.value.(type) {
	case int64:
		return true
	case []any:
		return len(v) > 0 && v[0] == int64(1)
	}
	return false
}
