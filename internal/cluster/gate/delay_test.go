package gate

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestJitterIsDrawnFromTheSeed: each connection has its own sequence of delays, which is the same for the same seed.
func TestJitterIsDrawnFromTheSeed(t *testing.T) {
	draws := func(seed, number uint64) (all []time.Duration) {
		p := &pump{dice: cluster.Dice{ID: number}}
		for range 100 {
			d := p.dice.Jitter(cluster.Rule{Jitter: time.Second, Seed: seed})
			if d < 0 || d > time.Second {
				t.Fatalf("drawn %v", d)
			}
			all = append(all, d)
		}
		return all
	}
	first := draws(1, 2)
	if !slices.Equal(first, draws(1, 2)) {
		t.Error("the same seed draws other delays")
	}
	if slices.Equal(first, draws(2, 2)) || slices.Equal(first, draws(1, 3)) {
		t.Error("another seed, or another connection, draws the same")
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(first))); len(distinct) < 90 {
		t.Errorf("100 packets draw %d delays", len(distinct))
	}
	if d := (&pump{}).dice.Jitter(cluster.Rule{Delay: time.Second}); d != 0 {
		t.Errorf("without jitter %v is drawn", d)
	}
}

// TestJitterKeepsOrder: a packet with a smaller delay does not overtake.
func TestJitterKeepsOrder(t *testing.T) {
	s, g, a, _ := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Jitter: 30 * time.Millisecond, Seed: 7})
	want := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	sent := g.Traffic("a", cluster.Forward).Passed
	for _, line := range want {
		a.write(t, line)
		sent += int64(len(line) + 1)
		waitFor(t, func() bool { // so that each is a packet of its own; it may already have passed
			now := g.Traffic("a", cluster.Forward)
			return now.Waiting+now.Passed >= sent
		})
	}
	s.expect(t, want...)
}

// TestRateIsSharedAndEndsWithItsRule: two connections share a rate; when its rule ends
// the rest is sent at once.
func TestRateIsSharedAndEndsWithItsRule(t *testing.T) {
	s, g, a, _ := connected(t)
	other := dial(t, g, "127.0.0.7")
	const rate = 1000
	g.SetRule("a", cluster.Forward, cluster.Rule{Rate: rate})
	began := time.Now()
	line := string(bytes.Repeat([]byte("x"), 99))
	a.write(t, line)
	s.expect(t, line)
	other.write(t, line)
	s.expect(t, line)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("200 bytes at %d bytes per second took %v", rate, took)
	}
	const lines = 1000 // would take 100 s
	for range lines {
		a.write(t, line)
	}
	g.SetRule("a", cluster.Forward, cluster.Rule{})
	for range lines {
		s.expect(t, line)
	}
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("the rate still applied after its rule: %v", took)
	}
}

// sender is a server that sends the texts that the test passes to send.
func sender(t *testing.T) (addr string, send func(string)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			conns <- c
		}
	}()
	var conn net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		if conn != nil {
			_ = conn.Close()
		}
	})
	return l.Addr().String(), func(text string) {
		if conn == nil {
			conn = <-conns
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Error(err)
		}
	}
}

// TestMuteDropsOnlyMessages: the connection continues, and other replies arrive.
func TestMuteDropsOnlyMessages(t *testing.T) {
	const (
		subscribed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nn\r\n:1\r\n"
		message    = "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$5\r\nlost!\r\n"
		later      = "*3\r\n$7\r\nmessage\r\n$1\r\nn\r\n$5\r\nlater\r\n"
		pong       = "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	)
	addr, send := sender(t)
	g := openGate(t, addr)
	a := dial(t, g, "127.0.0.7")
	receives := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		_ = a.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n, err := io.ReadFull(a, got); err != nil || string(got) != want {
			t.Fatalf("received %q, %v, want %q", got[:n], err, want)
		}
	}
	send(subscribed)
	receives(subscribed)
	g.SetRule("a", cluster.Back, cluster.Rule{Mute: true})
	send(message + pong)
	receives(pong)
	send(message[:9])
	send(message[9:] + pong)
	receives(pong)
	if got := g.Traffic("a", cluster.Back); got.Messages != 2 || got.Resets != 0 {
		t.Errorf("%+v, want 2 messages lost, and no reset", got)
	}
	g.SetRule("a", cluster.Back, cluster.Rule{})
	send(later)
	receives(later)
	if got := g.Traffic("a", cluster.Back).Messages; got != 2 {
		t.Errorf("%d messages lost after the rule", got)
	}
}

// TestOneInConcernsThatShare: a rule for one packet in four leaves the others alone, and the packets of a seed are the
// same.
func TestOneInConcernsThatShare(t *testing.T) {
	draws := func(seed uint64) (late []int) {
		p := &pump{dice: cluster.Dice{ID: 1}}
		for i := range 1000 {
			if p.dice.Jitter(cluster.Rule{Jitter: time.Hour, OneIn: 4, Seed: seed}) > 0 {
				late = append(late, i)
			}
		}
		return late
	}
	first := draws(1)
	if len(first) < 200 || len(first) > 300 {
		t.Errorf("%d of 1,000 packets were concerned", len(first))
	}
	if !slices.Equal(first, draws(1)) || slices.Equal(first, draws(2)) {
		t.Error("the seed does not decide which")
	}
}
