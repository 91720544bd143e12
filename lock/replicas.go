package lock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// AllReplicas is for [Options].Replicas: every replica that is connected when the
// lock is granted, and at least one.
const AllReplicas = -1

// replicas sends scripts and then waits, on the same connection, until enough
// replicas have what they wrote: WAIT is about its own connection only.
type replicas struct {
	rdb     redis.UniversalClient
	need    int // or AllReplicas
	timeout time.Duration
}

// send is that of a pipe. A grant that too few replicas have comes with an error of
// the outcome underReplicated.
func (r *replicas) send(ctx context.Context, calls []call) []answer {
	cluster, ok := r.rdb.(*redis.ClusterClient)
	if !ok {
		if one, ok := r.rdb.(*redis.Client); ok {
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

// refuse is the answer to calls that are not sent.
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

// wait waits until enough replicas have what was written on conn.
func (r *replicas) wait(ctx context.Context, conn *redis.Conn) error {
	need := r.need
	if need == AllReplicas {
		// Each time: which were connected earlier does not matter.
		role, err := conn.Do(ctx, "ROLE").Slice()
		if err != nil {
			return fmt.Errorf("%w: find out which there are: %w", ErrTooFewReplicas, err)
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

// granted reports whether the script has acquired or changed what it is about.
func (a answer) granted() bool {
	if a.err != nil {
		return false
	}
	r, err := decode(a.value, 0)
	return err == nil && r.code == codeOK
}
