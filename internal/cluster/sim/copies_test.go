package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// duplicator sends commands of clients 0 and 1 while client 0's are executed twice, and records the outcome.
type duplicator struct {
	c interface {
		cluster.Cluster
		cluster.Links
	}
	ctx  context.Context
	dial func(client int) func(ctx context.Context, network, addr string) (net.Conn, error)

	when    cluster.Twice
	clients []*redis.Client
	log     []string
}

func (d *duplicator) client(number, db int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: d.c.Nodes()[0].Addr, Dialer: d.dial(number), DB: db,
		Password: d.c.Endpoints(number).Password, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	d.clients = append(d.clients, c)
	return c
}

func (d *duplicator) rule(r cluster.Rule) error { return d.c.SetRule(link0(), cluster.Forward, r) }

// twice waits until so many copies were executed.
func (d *duplicator) twice(want int64) error {
	for end := time.Now().Add(stepTimeout); ; {
		traffic, err := d.c.Traffic(link0(), cluster.Forward)
		switch {
		case err != nil || traffic.Twice == want:
			return err
		case traffic.Twice > want || time.Now().After(end):
			return fmt.Errorf("%d requests were executed twice, want %d", traffic.Twice, want)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls: a gate sends no event when a copy was executed
	}
}

func (d *duplicator) record() ([]string, error) {
	defer func() {
		for _, c := range d.clients {
			_ = c.Close()
		}
	}()
	c, one, other := d.client(0, 0), d.client(0, 1), d.client(1, 0)
	for _, opened := range []*redis.Client{c, one, other} { // the rule applies to open connections too
		if err := opened.Ping(d.ctx).Err(); err != nil {
			return nil, err
		}
	}
	if err := d.rule(cluster.Rule{Twice: d.when}); err != nil {
		return nil, err
	}
	d.log = append(d.log, fmt.Sprint("reply ", c.Incr(d.ctx, "a").Val()))
	one.Incr(d.ctx, "in database 1")
	c.Eval(d.ctx, "return redis.call('RPUSH', KEYS[1], ARGV[1])", []string{"list"}, "x")
	if err := d.twice(3); err != nil {
		return nil, err
	}
	other.Incr(d.ctx, "another client")
	_, _ = c.TxPipelined(d.ctx, func(p redis.Pipeliner) error { return p.Incr(d.ctx, "in MULTI").Err() })
	c.BLPop(d.ctx, time.Second, "list")
	c.Incr(d.ctx, "list") // WRONGTYPE is no execution
	pipe := c.Pipeline()
	for range 3 {
		pipe.Incr(d.ctx, "in a pipeline")
	}
	_, _ = pipe.Exec(d.ctx)
	if err := d.twice(6); err != nil {
		return nil, err
	}
	if err := d.late(c, other); err != nil {
		return nil, err
	}
	c.Incr(d.ctx, "healed")
	for _, key := range []string{"a", "another client", "in MULTI", "in a pipeline", "late", "healed"} {
		d.log = append(d.log, key+" "+c.Get(d.ctx, key).Val())
	}
	d.log = append(d.log, "in database 1 "+one.Get(d.ctx, "in database 1").Val(),
		"list "+fmt.Sprint(c.LLen(d.ctx, "list").Val()))
	return d.log, nil
}

// late heals the fault between the two executions of a request: a late copy does not arrive, and a request that waits
// arrives.
func (d *duplicator) late(c, other *redis.Client) error {
	if err := d.rule(cluster.Rule{Twice: d.when, TwiceBy: 1000 * time.Hour}); err != nil {
		return err
	}
	replied := make(chan struct{})
	go func() {
		c.Incr(context.WithoutCancel(d.ctx), "late")
		close(replied)
	}()
	for end := time.Now().Add(stepTimeout); other.Get(d.ctx, "late").Val() != "1"; {
		if time.Now().After(end) {
			return errors.New("the first execution did not happen")
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls the server
	}
	if d.when == cluster.AfterReply {
		<-replied
	}
	if err := d.rule(cluster.Rule{}); err != nil {
		return err
	}
	<-replied
	return nil
}

// TestRequestsAreExecutedTwice on simulated and on real servers.
func TestRequestsAreExecutedTwice(t *testing.T) {
	for name, when := range map[string]cluster.Twice{"before the reply": cluster.BeforeReply, "after it": cluster.AfterReply} {
		want := []string{"reply 1", "a 2", "another client 1", "in MULTI 1", "in a pipeline 6", "late 1", "healed 1",
			"in database 1 2", "list 1"}
		if when == cluster.BeforeReply {
			want[0], want[5] = "reply 2", "late 2"
		}
		check := func(t *testing.T, d *duplicator) {
			t.Helper()
			d.when = when
			log, err := d.record()
			if err != nil || !slices.Equal(log, want) {
				t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(log, "\n"), strings.Join(want, "\n"))
			}
		}
		t.Run("simulated, "+name, func(t *testing.T) {
			cfg := single()
			cfg.Password = "p"
			simulate(t, cfg, func(w *world) {
				dial := func(i int) func(context.Context, string, string) (net.Conn, error) { return w.Client(i).Dial }
				check(t, &duplicator{c: w.Cluster, ctx: w.ctx, dial: dial})
			})
		})
		t.Run("real, "+name, func(t *testing.T) {
			if _, err := process.Version(t.Context(), ""); err != nil {
				t.Skip("NOT RUN: needs real servers: ", err)
			}
			withReal(t, cluster.Topology{Kind: cluster.Single}, func(c *process.Cluster) {
				dial := func(i int) func(context.Context, string, string) (net.Conn, error) {
					source := netip.AddrPortFrom(netip.MustParseAddr(c.Endpoints(i).Source), 0)
					return (&net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(source)}).DialContext
				}
				check(t, &duplicator{c: c, ctx: t.Context(), dial: dial})
			})
		})
	}
}

// TestCopyOfAPausedServer: a copy that comes while the server is paused is executed when it resumes; one of a server
// that was killed is not.
func TestCopyOfAPausedServer(t *testing.T) {
	simulate(t, sim.Config{Topology: cluster.Topology{Kind: cluster.Single}, Seed: 1}, func(w *world) {
		c := w.client(0)
		w.ok(w.SetRule(link0(), cluster.Forward, cluster.Rule{Twice: cluster.AfterReply, TwiceBy: 10 * time.Millisecond, Seed: 1}))
		twice := func() int64 {
			traffic, err := w.Traffic(link0(), cluster.Forward)
			w.ok(err)
			return traffic.Twice
		}
		w.ok(c.Incr(w.ctx, "a").Err())
		w.ok(w.Pause(w.ctx, "n1"))
		pass(time.Second)
		if n := twice(); n != 0 {
			t.Errorf("%d copies of a paused server", n)
		}
		w.ok(w.Resume(w.ctx, "n1"))
		pass(time.Second)
		if n := twice(); n != 1 || c.Get(w.ctx, "a").Val() != "2" {
			t.Errorf("%d copies after it has resumed, want 1", n)
		}
		w.ok(c.Incr(w.ctx, "a").Err())
		w.ok(w.Kill(w.ctx, "n1"))
		pass(time.Second)
		if n := twice(); n != 1 {
			t.Errorf("%d copies, one of them of a server that was killed", n)
		}
	})
}
