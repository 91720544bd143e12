package engine

import (
	"syscall"
	"testing"
	"time"
)

// benchServer is a server that propagates, as a master does.
func benchServer() (*Conn, *time.Time) {
	now := time.UnixMilli(1_700_000_000_000)
	s := New(Config{Now: func() time.Time { return now }, Propagate: func(int, [][][]byte) {}})
	return s.Open("a:1", func([]byte) {}), &now
}

// feedAll feeds the commands in a cycle, and reports commands per second.
func feedAll(b *testing.B, c *Conn, now *time.Time, commands ...[]string) {
	b.Helper()
	var wire [][]byte
	for _, args := range commands {
		wire = append(wire, encode(args))
	}
	for _, w := range wire { // once, to compile scripts
		c.Feed(w)
	}
	b.ReportAllocs()
	i, busy := 0, cpuTime(b)
	for b.Loop() {
		*now = now.Add(10 * time.Microsecond)
		c.Feed(wire[i%len(wire)])
		i++
	}
	b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(float64(i)/(cpuTime(b)-busy).Seconds(), "commands/cpu-s")
}

// cpuTime is the processor time of this process: on a busy machine only that measures
// the engine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkSetGet(b *testing.B) {
	c, now := benchServer()
	feedAll(b, c, now, []string{"SET", "key", "value", "PX", "10000"}, []string{"GET", "key"})
}

func BenchmarkSetNxAndCompareAndDelete(b *testing.B) {
	c, now := benchServer()
	script := "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	c.Feed(encode([]string{"SCRIPT", "LOAD", script}))
	feedAll(b, c, now, []string{"SET", "lock", "owner", "NX", "PX", "10000"},
		[]string{"EVALSHA", digestOf(script), "1", "lock", "owner"})
}

// BenchmarkMutex is the mutex of package lock: acquire, renew and release with their
// scripts, and a token.
func BenchmarkMutex(b *testing.B) {
	c, now := benchServer()
	acquire := "local standard = '10000'\n" + scriptText(b, "mint", "acquire")
	renew, release := scriptText(b, "renew"), "local life = '1000'\n"+scriptText(b, "release")
	for _, text := range []string{acquire, renew, release} {
		c.Feed(encode([]string{"SCRIPT", "LOAD", text}))
	}
	feedAll(b, c, now,
		[]string{"EVALSHA", digestOf(acquire), "3", "{l}", "{l}:p", "{l}:t", "hold", "10000", "owner"},
		[]string{"EVALSHA", digestOf(renew), "1", "{l}", "hold", "20000"},
		[]string{"EVALSHA", digestOf(release), "3", "{l}", "{l}:p", "{l}:c", "hold", "owner"})
}

func BenchmarkPublish(b *testing.B) {
	c, now := benchServer()
	for range 10 {
		c.s.Open("b:1", func([]byte) {}).Feed(encode([]string{"SUBSCRIBE", "ch"}))
	}
	feedAll(b, c, now, []string{"PUBLISH", "ch", "message"})
}

func BenchmarkNew(b *testing.B) {
	now := time.UnixMilli(1_700_000_000_000)
	for b.Loop() {
		s := New(Config{Now: func() time.Time { return now }})
		s.Open("a:1", func([]byte) {}).Feed(encode([]string{"EVAL", "return 1", "0"}))
	}
}
