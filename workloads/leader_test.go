package workloads

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// led is what one client of workload leader requests, as "acquire work work release", until its n-th request. change
// prepares it.
func led(t *testing.T, n int, change func(*workloadtest.Client, *workload.Env)) (string, *workloadtest.Tape) {
	t.Helper()
	tape := workloadtest.NewTape()
	c := workloadtest.NewClient(workloadtest.NewLock())
	e := workloadtest.Env(c, tape, 0, 3, 1)
	e.Params.Kind, e.Params.Lease, e.Can = workload.Leader, 0, promise.ReportsLoss
	change(c, &e)
	listened := make(chan struct{})
	go func() {
		e.Session.Listen()
		close(listened)
	}()
	leaderClient(t.Context(), workloadtest.StopAfter(c, n), e)
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-listened
	var ops []string
	for _, r := range c.Requests {
		ops = append(ops, r.Op)
		if r.Key != "leadership" {
			t.Errorf("%s of key %s", r.Op, r.Key)
		}
	}
	return strings.Join(ops, " "), tape
}

// onWork replies to the n-th request for work.
func onWork(c *workloadtest.Client, n int, reply func(r client.Request) *client.Reply) {
	count, before := 0, c.Script
	c.Script = func(i int, r client.Request) (*client.Reply, error) {
		if r.Op == history.Work {
			if count++; count == n {
				return reply(r), nil
			}
		}
		return before(i, r)
	}
}

func TestLeader(t *testing.T) {
	refused := func(op string) func(int, client.Request) (*client.Reply, error) {
		return func(_ int, r client.Request) (*client.Reply, error) {
			if r.Op == op {
				return &client.Reply{Type: "fail", Code: "held"}, nil
			}
			return nil, nil
		}
	}
	for _, test := range []struct {
		name   string
		change func(*workloadtest.Client, *workload.Env)
		n      int
		want   string
	}{
		{"leads to the end of the run, and resigns", func(*workloadtest.Client, *workload.Env) {}, 5,
			"acquire work work work work release"},
		{"resigns after its term, and campaigns again", func(_ *workloadtest.Client, e *workload.Env) {
			e.Params.Term = 25 * time.Millisecond
		}, 7, "acquire work work work release acquire work release"},
		{"steps down when the loss is reported", func(c *workloadtest.Client, _ *workload.Env) {
			onWork(c, 2, func(r client.Request) *client.Reply {
				c.Notified <- client.Reply{Event: history.Lost, Key: r.Key, Owner: r.Owner}
				synctest.Wait()
				return &client.Reply{Type: "ok"}
			})
		}, 4, "acquire work work acquire"},
		{"steps down when its validity ends, if no loss is reported", func(c *workloadtest.Client, e *workload.Env) {
			e.Can = 0
			c.Script = func(n int, _ client.Request) (*client.Reply, error) {
				if n == 1 {
					return &client.Reply{Type: "ok", ValidMS: 25, MonoNS: time.Now().UnixNano()}, nil
				}
				return nil, nil
			}
		}, 5, "acquire work work work acquire"},
		{"leaves renewals to a lock that renews itself", func(_ *workloadtest.Client, e *workload.Env) {
			e.Can = e.Can.With(promise.Renew | promise.Watchdog)
		}, 4, "acquire work work work release"},
		{"renews the lease of a lock that does not", func(_ *workloadtest.Client, e *workload.Env) {
			e.Can = e.Can.With(promise.Renew)
		}, 4, "acquire work renew work renew release"},
		{"renews a lease that it has requested", func(_ *workloadtest.Client, e *workload.Env) {
			e.Params.Lease, e.Can = time.Second, e.Can.With(promise.Renew)
		}, 4, "acquire work renew work renew release"},
		{"steps down when a renewal is refused", func(c *workloadtest.Client, e *workload.Env) {
			e.Params.Lease, e.Can = time.Second, e.Can.With(promise.Renew)
			c.Script = refused(history.Renew)
		}, 4, "acquire work renew acquire"},
		{"resigns when its work fails", func(c *workloadtest.Client, _ *workload.Env) {
			onWork(c, 1, func(client.Request) *client.Reply { return &client.Reply{Type: "fail"} })
		}, 4, "acquire work release acquire"},
		{"asks who leads, if the lock shows it", func(c *workloadtest.Client, e *workload.Env) {
			e.Can = e.Can.With(promise.Inspect)
			c.Script = refused(history.Acquire)
		}, 4, "acquire inspect acquire inspect"},
		{"asks nobody otherwise", func(c *workloadtest.Client, _ *workload.Env) { c.Script = refused(history.Acquire) }, 3,
			"acquire acquire acquire"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, tape := led(t, test.n, test.change)
				if !strings.HasPrefix(got+" ", test.want+" ") { // the last hold may be released
					t.Errorf("it requests %q, want %q", got, test.want)
				}
				tape.History(t)
			})
		})
	}
}

// TestLeaderWrites: a leader writes after each piece of work, but not after the one in which it has lost the lock.
func TestLeaderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tape := led(t, 4, func(c *workloadtest.Client, _ *workload.Env) {
			onWork(c, 2, func(r client.Request) *client.Reply {
				c.Notified <- client.Reply{Event: history.Lost, Key: r.Key, Owner: r.Owner}
				synctest.Wait()
				return &client.Reply{Type: "ok"}
			})
		})
		want := []string{
			"0 acquire invoke", "0 acquire ok", "0 work invoke", "0 work ok", "0 touch ok", "0 work invoke",
			"0 lost info", "0 work ok", "0 acquire invoke",
		}
		words := tape.Words()
		if diff := cmp.Diff(want, words[:min(len(words), len(want))]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
