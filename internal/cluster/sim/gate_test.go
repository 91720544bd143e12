package sim_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// link0 is the way of client 0 to the only server.
func link0() cluster.Link { return cluster.Link{From: "client:0", To: "n1"} }

func (w *world) rule(l cluster.Link, dir cluster.Direction, mode cluster.Mode) {
	w.t.Helper()
	w.ok(w.SetRule(l, dir, cluster.Rule{Mode: mode}))
}

func TestGateHoldsAndDeliversLate(t *testing.T) {
	for name, dir := range map[string]cluster.Direction{"requests": cluster.Forward, "replies": cluster.Back} {
		t.Run(name, func(t *testing.T) {
			simulate(t, single(), func(w *world) {
				c, other := w.client(0), w.client(1)
				w.ok(c.Set(w.ctx, "k", "before", 0).Err())
				w.rule(link0(), dir, cluster.Hold)
				failed := make(chan error, 1)
				go func() { failed <- c.Set(context.Background(), "k", "held", 0).Err() }()
				pass(time.Second)
				traffic, err := w.Traffic(link0(), dir)
				if err != nil || traffic.Waiting == 0 {
					t.Errorf("%+v, %v", traffic, err)
				}
				var timeout net.Error
				if err := <-failed; !errors.As(err, &timeout) || !timeout.Timeout() {
					t.Errorf("while held: %v", err)
				}
				w.self.Turn()
				want := map[cluster.Direction]string{cluster.Forward: "before", cluster.Back: "held"}[dir]
				if v := other.Get(w.ctx, "k").Val(); v != want {
					t.Errorf("%q while held, want %q: others are not held", v, want)
				}
				w.rule(link0(), dir, cluster.Pass)
				pass(10 * time.Millisecond)
				if v := other.Get(w.ctx, "k").Val(); v != "held" {
					t.Errorf("%q after the hold: the late command must still be carried out", v)
				}
				if traffic, _ = w.Traffic(link0(), dir); traffic.Waiting != 0 || traffic.Passed == 0 {
					t.Errorf("after the hold %+v", traffic)
				}
			})
		})
	}
}

// TestHeldCallAnswersWhenTheHoldEnds: a client that is patient enough loses nothing.
func TestHeldCallAnswersWhenTheHoldEnds(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.client(0)
		w.ok(c.Ping(w.ctx).Err())
		w.rule(link0(), cluster.Both, cluster.Hold)
		go func() {
			pass(time.Second)
			w.Actor("nemesis").Turn()
			w.rule(link0(), cluster.Both, cluster.Pass)
		}()
		began := w.Now()
		w.ok(c.Set(w.ctx, "k", "v", 0).Err())
		if took := w.Now() - began; took < time.Second || took > 1010*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

func TestGateDropsAndResets(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c, other := w.client(0), w.client(1)
		w.ok(c.Ping(w.ctx).Err())
		w.rule(link0(), cluster.Forward, cluster.Drop)
		ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
		defer cancel()
		if err := c.Set(ctx, "k", "lost", 0).Err(); err == nil {
			t.Error("a dropped command was answered")
		}
		if traffic, _ := w.Traffic(link0(), cluster.Forward); traffic.Dropped == 0 || traffic.Resets != 0 {
			t.Errorf("%+v", traffic)
		}
		w.rule(link0(), cluster.Forward, cluster.Pass)
		pass(10 * time.Millisecond)
		if n := other.Exists(w.ctx, "k").Val(); n != 0 {
			t.Error("a dropped command was carried out")
		}
		w.ok(c.Set(w.ctx, "k", "v", 0).Err())
	})
}

func TestDroppedBytesResetTheConnectionLater(t *testing.T) {
	simulate(t, single(), func(w *world) {
		conn, err := w.Client(0).Dial(w.ctx, "tcp", w.Nodes()[0].Addr)
		w.ok(err)
		w.rule(link0(), cluster.Forward, cluster.Drop)
		_, err = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		w.ok(err)
		pass(10 * time.Millisecond)
		w.rule(link0(), cluster.Forward, cluster.Pass)
		if _, err = conn.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reading: %v", err)
		}
		if traffic, _ := w.Traffic(link0(), cluster.Forward); traffic.Resets != 1 || traffic.Dropped != 14 {
			t.Errorf("%+v", traffic)
		}
		w.ok(conn.Close())
	})
}

func TestGateCutsAndRefuses(t *testing.T) {
	simulate(t, single(), func(w *world) {
		a, addr := w.Client(0), w.Nodes()[0].Addr
		conn, err := a.Dial(w.ctx, "tcp", addr)
		w.ok(err)
		w.rule(link0(), cluster.Both, cluster.Cut)
		if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("an open connection: %v", err)
		}
		var op *net.OpError
		if _, err := a.Dial(w.ctx, "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) {
			t.Errorf("a new connection: %v", err)
		}
		if _, err := conn.Write([]byte("x")); err == nil {
			t.Error("writing to a reset connection")
		}
		other, err := w.Client(1).Dial(w.ctx, "tcp", addr)
		w.ok(err)
		w.ok(other.Close())
		w.rule(link0(), cluster.Both, cluster.Pass)
		again, err := a.Dial(w.ctx, "tcp", addr)
		w.ok(err)
		w.ok(again.Close())
		w.ok(conn.Close())
	})
}

func TestGateDelays(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.client(0)
		w.ok(c.Ping(w.ctx).Err())
		w.ok(w.SetRule(link0(), cluster.Back, cluster.Rule{Delay: 300 * time.Millisecond}))
		began := w.Now()
		w.ok(c.Ping(w.ctx).Err())
		if took := w.Now() - began; took < 300*time.Millisecond || took > 303*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// TestGateJittersAndIsNarrow: packets draw apart, the same for the same seed; a rate makes long replies late; both end
// with their rule.
func TestGateJittersAndIsNarrow(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.client(0)
		w.ok(c.Set(w.ctx, "k", strings.Repeat("x", 1000), 0).Err())
		rule := func(r cluster.Rule) { w.ok(w.SetRule(link0(), cluster.Back, r)) }
		took := func() time.Duration {
			began := w.Now()
			w.ok(c.Get(w.ctx, "k").Err())
			return w.Now() - began
		}
		rule(cluster.Rule{Jitter: 100 * time.Millisecond, Seed: 5})
		seen := map[time.Duration]bool{}
		for range 20 {
			d := took().Truncate(5 * time.Millisecond)
			if d > 105*time.Millisecond {
				t.Errorf("it took %v", d)
			}
			seen[d] = true
		}
		if len(seen) < 5 {
			t.Errorf("20 packets were late by %v", seen)
		}
		rule(cluster.Rule{Rate: 10_000})
		if d := took(); d < 100*time.Millisecond || d > 110*time.Millisecond {
			t.Errorf("1,000 bytes at 10,000 per second took %v", d)
		}
		rule(cluster.Rule{Delay: 2 * time.Second})
		go func() {
			pass(500 * time.Millisecond)
			w.Actor("nemesis").Turn()
			rule(cluster.Rule{})
		}()
		if d := took(); d < 500*time.Millisecond || d > 510*time.Millisecond {
			t.Errorf("what was late when its rule ended took %v", d)
		}
	})
}

// TestGateMutes: a message is lost on its way to one subscriber; another one gets it.
func TestGateMutes(t *testing.T) {
	simulate(t, single(), func(w *world) {
		deaf, other := w.client(0), w.client(1)
		var got [2]<-chan *redis.Message
		for i, c := range []redis.UniversalClient{deaf, other} {
			sub := c.Subscribe(w.ctx, "news")
			defer sub.Close()
			_, err := sub.Receive(w.ctx)
			w.ok(err)
			got[i] = sub.Channel()
		}
		w.ok(w.SetRule(link0(), cluster.Back, cluster.Rule{Mute: true}))
		w.ok(other.Publish(w.ctx, "news", "lost").Err())
		if m := <-got[1]; m.Payload != "lost" {
			t.Errorf("the other heard %v", m)
		}
		pass(10 * time.Millisecond)
		w.ok(w.SetRule(link0(), cluster.Back, cluster.Rule{}))
		if traffic, err := w.Traffic(link0(), cluster.Back); err != nil || traffic.Messages != 1 || traffic.Resets != 0 {
			t.Errorf("%+v, %v", traffic, err)
		}
		w.ok(other.Publish(w.ctx, "news", "later").Err())
		if m := <-got[0]; m.Payload != "later" {
			t.Errorf("the deaf one heard %v", m)
		}
	})
}

func TestDialling(t *testing.T) {
	simulate(t, single(), func(w *world) {
		a, addr := w.Client(0), w.Nodes()[0].Addr
		if _, err := a.Dial(w.ctx, "tcp", "10.9.9.9:1"); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("an address without a server: %v", err)
		}
		w.rule(link0(), cluster.Both, cluster.Hold)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		began := w.Now()
		_, err := a.Dial(ctx, "tcp", addr)
		var timeout net.Error
		took := w.Now() - began // until its next turn
		if !errors.As(err, &timeout) || !timeout.Timeout() || took < time.Second || took > time.Second+time.Millisecond {
			t.Errorf("through a partition: %v after %v", err, took)
		}
		cancel()
		w.rule(link0(), cluster.Both, cluster.Pass)
		w.ok(w.Pause(w.ctx, "n1"))
		conn, err := a.Dial(w.ctx, "tcp", addr) // the system accepts for a paused process
		w.ok(err)
		w.ok(conn.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = conn.Write([]byte("*1\r\n$4\r\nPING\r\n"))
		w.ok(err)
		if _, err := conn.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading from a paused server: %v", err)
		}
		w.ok(conn.SetReadDeadline(time.Time{}))
		w.ok(w.Resume(w.ctx, "n1"))
		reply := make([]byte, 10)
		n, err := conn.Read(reply)
		if w.ok(err); string(reply[:n]) != "+PONG\r\n" {
			t.Errorf("after it resumed: %q", reply[:n])
		}
		w.ok(conn.Close())
		if _, err := conn.Read(reply); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reading a closed connection: %v", err)
		}
	})
}

// TestCloseEndsAWaitingRead, as it does in package net.
func TestCloseEndsAWaitingRead(t *testing.T) {
	simulate(t, single(), func(w *world) {
		conn, err := w.Client(0).Dial(w.ctx, "tcp", w.Nodes()[0].Addr)
		w.ok(err)
		done := make(chan error)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			done <- err
		}()
		pass(time.Second)
		w.ok(conn.Close())
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("the reader got %v", err)
		}
	})
}

// TestFrozenClient: nothing is sent by it or delivered to it, and it resumes where it stopped.
func TestFrozenClient(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c, other := w.client(0), w.client(1)
		w.ok(c.Ping(w.ctx).Err())
		a := w.Client(0)
		a.Freeze()
		sent := make(chan time.Duration)
		go func() {
			a.Turn()
			if err := c.Set(context.Background(), "k", "late", 0).Err(); err != nil {
				t.Error(err)
			}
			sent <- w.Now()
		}()
		pass(time.Second)
		if n := other.Exists(w.ctx, "k").Val(); n != 0 {
			t.Error("a frozen client has written")
		}
		a.Thaw()
		thawed := w.Now()
		if at := <-sent; at < thawed {
			t.Errorf("it was done at %v, thawed at %v", at, thawed)
		}
		w.self.Turn()
		if v := other.Get(w.ctx, "k").Val(); v != "late" {
			t.Errorf("after the thaw %q", v)
		}
	})
}

func TestAReplyWaitsForAFrozenClient(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c, other, a := w.client(0), w.client(1), w.Client(0)
		w.ok(c.Ping(w.ctx).Err())
		w.ok(w.SetRule(link0(), cluster.Back, cluster.Rule{Delay: 10 * time.Millisecond}))
		done := make(chan time.Duration)
		go func() {
			a.Turn()
			if err := c.Set(context.Background(), "k", "v", 0).Err(); err != nil {
				t.Error(err)
			}
			a.AwaitThaw()
			done <- w.Now()
		}()
		pass(5 * time.Millisecond)
		a.Freeze() // the request is there, the reply on its way
		pass(time.Second)
		if v := other.Get(w.ctx, "k").Val(); v != "v" {
			t.Errorf("the request had left before, yet there is %q", v)
		}
		a.Thaw()
		thawed := w.Now()
		if at := <-done; at < thawed {
			t.Errorf("the client resumed at %v, before it was thawed at %v", at, thawed)
		}
		w.self.Turn()
	})
}

func TestLinksThatAreNotThere(t *testing.T) {
	simulate(t, single(), func(w *world) {
		for _, l := range []cluster.Link{{From: "client:0", To: "n2"}, {From: "x", To: "n1"}, {From: "client:-1", To: "n1"}} {
			if err := w.SetRule(l, cluster.Both, cluster.Rule{}); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("%v: %v", l, err)
			}
			if _, err := w.Traffic(l, cluster.Both); !errors.Is(err, cluster.ErrNoNode) {
				t.Errorf("%v: %v", l, err)
			}
		}
		w.rule(cluster.Link{From: cluster.Any, To: cluster.Any}, cluster.Both, cluster.Hold)
		c := w.client(0)
		if err := c.Ping(w.ctx).Err(); err == nil {
			t.Error("a rule for all links holds nothing")
		}
	})
}

// A rule that resets the connection in place of one packet in three: some requests are lost, some replies, and a client
// that retries gets through.
func TestGateResetsInPlaceOfPackets(t *testing.T) {
	for name, dir := range map[string]cluster.Direction{"requests": cluster.Forward, "replies": cluster.Back} {
		t.Run(name, func(t *testing.T) {
			simulate(t, single(), func(w *world) {
				c, other := w.client(0), w.client(1)
				w.ok(w.SetRule(link0(), dir, cluster.Rule{Reset: true, OneIn: 3, Seed: 1}))
				failed := 0
				for range 60 {
					if c.Incr(w.ctx, "k").Err() != nil {
						failed++
					}
				}
				w.ok(w.SetRule(link0(), dir, cluster.Rule{}))
				executed, err := other.Get(w.ctx, "k").Int()
				if err != nil || failed < 10 || failed > 50 {
					t.Errorf("%d of 60 requests failed, %v", failed, err)
				}
				if replied := 60 - failed; (executed > replied) != (dir == cluster.Back) { // not requests after a handshake
					t.Errorf("%d requests were executed, and %d were replied to", executed, replied)
				}
				if traffic, _ := w.Traffic(link0(), dir); traffic.Resets != int64(failed) {
					t.Errorf("%d requests failed, but %+v", failed, traffic)
				}
			})
		})
	}
}
