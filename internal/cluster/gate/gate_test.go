package gate

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

const (
	hold = cluster.Hold
	drop = cluster.Drop
	cut  = cluster.Cut
)

func TestHoldDeliversLateAndInOrder(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: hold})
	a.write(t, "1")
	a.write(t, "2")
	s.expectNothing(t)
	b.write(t, "other") // another caller is not touched
	s.expect(t, "other")
	b.expect(t, "re other")
	late := dial(t, g, "127.0.0.7") // nor is a new connection spared
	late.write(t, "3")
	s.expectNothing(t)
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting == 6 })

	g.SetRule("a", cluster.Forward, cluster.Rule{})
	a.expect(t, "re 1", "re 2")
	late.expect(t, "re 3")
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting == 0 })
	a.write(t, "4")
	a.expect(t, "re 4")
	got := g.Traffic("a", cluster.Forward)
	if diff := cmp.Diff(cluster.Traffic{Passed: int64(len("hi.1.2.3.4."))}, got); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
}

func TestHoldBackKeepsReplies(t *testing.T) {
	s, g, a, _ := connected(t)
	g.SetRule("a", cluster.Back, cluster.Rule{Mode: hold})
	a.write(t, "1")
	s.expect(t, "1") // only the reply is held
	a.expectNothing(t)
	g.SetRule("a", cluster.Back, cluster.Rule{})
	a.expect(t, "re 1")
}

func TestHeldEndArrivesAfterTheBytes(t *testing.T) {
	s, g, a, _ := connected(t)
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{Mode: hold})
	a.write(t, "late")
	a.Close()
	s.expectNothing(t)
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{})
	s.expect(t, "late", "EOF")
}

func TestDropLosesThenResets(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: drop})
	a.write(t, "lost")
	s.expectNothing(t)
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Dropped == 5 })
	idle := dial(t, g, "127.0.0.7") // loses nothing, so it is not reset
	g.SetRule("a", cluster.Forward, cluster.Rule{})
	a.expect(t, "RST")
	s.expect(t, "RST")
	idle.write(t, "alive")
	s.expect(t, "alive")
	b.write(t, "too")
	s.expect(t, "too")
	if got := g.Traffic("a", cluster.Both).Resets; got != 1 {
		t.Errorf("%d resets, want 1", got)
	}
}

func TestSilentConnectionsStaySilent(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Both, cluster.Rule{Silent: true})
	a.write(t, "lost")
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Dropped == 5 })
	fresh := dial(t, g, "127.0.0.7") // was not open
	fresh.write(t, "new")
	s.expect(t, "new")
	fresh.expect(t, "re new")
	b.write(t, "other")
	s.expect(t, "other")
	g.SetRule("a", cluster.Both, cluster.Rule{})
	a.write(t, "more")
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Dropped == 10 })
	a.CloseWrite() // not even that arrives
	s.expectNothing(t)
	if got := g.Traffic("a", cluster.Both).Resets; got != 0 {
		t.Errorf("%d resets, want none", got)
	}
}

func TestSilentConnectionsLoseHeldBytes(t *testing.T) {
	s, g, a, _ := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: hold})
	a.write(t, "held")
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting == 5 })
	g.SetRule("a", cluster.Forward, cluster.Rule{Silent: true})
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Dropped == 5 })
	s.expectNothing(t)
}

func TestDropSwallowsHeldBytesAndTheEnd(t *testing.T) {
	s, g, a, _ := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: hold})
	a.write(t, "held")
	a.CloseWrite()
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting == 5 })
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: drop})
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Dropped == 5 })
	s.expectNothing(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: hold})
	s.expectNothing(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{})
	s.expect(t, "RST")
}

func TestCutResetsAndRefuses(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Both, cluster.Rule{Mode: cut})
	a.expect(t, "RST")
	s.expect(t, "RST")
	expectRefusal(t, g, "127.0.0.7")
	b.write(t, "1")
	b.expect(t, "re 1")
	g.SetRule("a", cluster.Both, cluster.Rule{})
	healed := dial(t, g, "127.0.0.7")
	healed.write(t, "2")
	healed.expect(t, "re 2")
}

func TestDelayKeepsOrderAndThroughput(t *testing.T) {
	s, g, a, _ := connected(t)
	const delay, lines = 60 * time.Millisecond, 2000
	g.SetRule("a", cluster.Forward, cluster.Rule{Delay: delay})
	began := time.Now()
	for i := range lines {
		a.write(t, fmt.Sprint(i))
	}
	if took := time.Since(began); took >= delay {
		t.Logf("slow machine: sending took %v", took)
	}
	for i := range lines {
		s.expect(t, fmt.Sprint(i))
		a.expect(t, fmt.Sprintf("re %d", i))
	}
	took := time.Since(began)
	if took < delay || took > delay*lines/2 {
		t.Errorf("%d lines took %v, want a little over %v, not %d times that", lines, took, delay, lines)
	}
	g.SetRule("a", cluster.Forward, cluster.Rule{})
	a.write(t, "last")
	a.expect(t, "re last")
}

func TestAnyReplacesEarlierRules(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Both, cluster.Rule{Mode: hold})
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{Mode: hold})
	g.SetRule("b", cluster.Both, cluster.Rule{})
	a.write(t, "1")
	b.write(t, "2")
	s.expect(t, "2")
	b.expect(t, "re 2")
	s.expectNothing(t)
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{})
	a.expect(t, "re 1")
	if sum, a, b := g.Traffic(cluster.Any, cluster.Both).Passed, g.Traffic("a", cluster.Both).Passed,
		g.Traffic("b", cluster.Both).Passed; sum != a+b || a == 0 || b == 0 {
		t.Errorf("traffic %d, want %d + %d", sum, a, b)
	}
}

func TestHalfClose(t *testing.T) {
	s, _, a, _ := connected(t)
	a.write(t, "last words")
	a.CloseWrite()
	s.expect(t, "last words", "EOF")
	a.expect(t, "re last words", "EOF")
}

func TestServerGone(t *testing.T) {
	s := newServer(t)
	g := openGate(t, s.listener.Addr().String())
	s.listener.Close()
	expectRefusal(t, g, "127.0.0.7")

	g.SetRule("a", cluster.Back, cluster.Rule{Mode: hold}) // the news is held too
	c := dial(t, g, "127.0.0.7")
	c.expectNothing(t)
	g.SetRule("a", cluster.Back, cluster.Rule{})
	c.expect(t, "RST")
}

func TestBigDataPassesUnharmed(t *testing.T) {
	s, g, a, _ := connected(t)
	line := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	go fmt.Fprintln(a, line)
	s.expect(t, line)
	a.expect(t, "re "+line)
	g.SetRule("a", cluster.Both, cluster.Rule{Mode: hold})
	a.write(t, line) // far below maxHeld
	g.SetRule("a", cluster.Both, cluster.Rule{})
	a.expect(t, "re "+line)
}

func TestRulesUnderLoadLoseNothing(t *testing.T) {
	_, g, a, _ := connected(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			rule := []cluster.Rule{{}, {Mode: hold}, {Delay: time.Millisecond}}[i%3]
			g.SetRule([]string{"a", cluster.Any}[i%2], cluster.Direction(1+i%3), rule)
			// Not a wait for an event: it spreads the changes over the transfer.
			time.Sleep(200 * time.Microsecond) //nolint:forbidigo // not a wait for an event
		}
		g.SetRule(cluster.Any, cluster.Both, cluster.Rule{})
	}()
	const lines = 500
	go func() {
		for i := range lines {
			fmt.Fprintln(a, i)
		}
	}()
	for i := range lines {
		a.expect(t, fmt.Sprintf("re %d", i))
	}
	<-done
}

func TestCloseEndsEverything(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Both, cluster.Rule{Mode: hold})
	a.write(t, "never")
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting == 6 })
	if err := g.Close(); err != nil { // waits for every goroutine of the gate
		t.Fatal(err)
	}
	a.expect(t, "RST")
	b.expect(t, "RST")
	s.expect(t, "RST", "RST")
	if got := g.Traffic(cluster.Any, cluster.Both).Waiting; got != 0 {
		t.Errorf("%d bytes still waiting", got)
	}
	if err := g.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if c, err := net.Dial("tcp", g.Addr()); err == nil {
		c.Close()
		t.Error("the address is still served")
	}
}

func TestHeldBytesAreBounded(t *testing.T) {
	_, g, a, _ := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Mode: hold})
	_ = a.SetWriteDeadline(time.Now().Add(30 * time.Second))
	flooded := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(a, io.LimitReader(zeros{}, 4*maxHeld))
		flooded <- n
	}()
	waitFor(t, func() bool { return g.Traffic("a", cluster.Forward).Waiting >= maxHeld })
	if got := g.Traffic("a", cluster.Forward).Waiting; got >= maxHeld+maxBuffer {
		t.Errorf("%d bytes held, want at most one buffer more than %d", got, maxHeld)
	}
	g.SetRule("a", cluster.Both, cluster.Rule{Mode: cut})
	if n := <-flooded; n < maxHeld || n == 4*maxHeld {
		t.Errorf("the sender sent %d bytes, want more than is held and less than all", n)
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestHeldCallReachesAServerThatCameBack(t *testing.T) {
	s := newServer(t)
	addr := s.listener.Addr().String()
	g := openGate(t, addr)
	s.listener.Close()
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{Mode: hold})
	c := dial(t, g, "127.0.0.7")
	c.write(t, "patient")
	c.expectNothing(t)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	back := &server{listener: l, got: make(chan string, 10)}
	back.tasks.Go(func() {
		if conn, err := l.Accept(); err == nil {
			back.reply(conn)
		}
	})
	defer back.tasks.Wait()
	defer g.Close()
	defer l.Close()
	g.SetRule(cluster.Any, cluster.Both, cluster.Rule{})
	c.expect(t, "re patient")
}

func TestRefuseAndAdmit(t *testing.T) {
	_, g, a, _ := connected(t)
	for range 2 {
		if err := g.Refuse(); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, g)
	a.write(t, "open connections continue")
	a.expect(t, "re open connections continue")
	for range 2 {
		if err := g.Admit(); err != nil {
			t.Fatal(err)
		}
	}
	b := dial(t, g, "127.0.0.7")
	b.write(t, "again")
	b.expect(t, "re again")
}

func TestResetInPlaceOfAPacket(t *testing.T) {
	s, g, a, b := connected(t)
	g.SetRule("a", cluster.Forward, cluster.Rule{Reset: true})
	a.write(t, "lost")
	a.expect(t, "RST")
	s.expect(t, "RST")
	b.write(t, "1")
	b.expect(t, "re 1")
	if got := g.Traffic("a", cluster.Forward); got.Resets != 1 || got.Dropped != 5 {
		t.Errorf("%+v", got)
	}
}
