package lock

import (
	"context"
	"testing"
)

// BenchmarkCounted is one acquire and one release of uncontended permits and locks.
func BenchmarkCounted(b *testing.B) {
	ctx := context.Background()
	srv := startRedis(b)
	c := newTestClient(b, srv.Dial(b), Options{})
	for kind, build := range builders() {
		b.Run(kind, func(b *testing.B) {
			s := build(c, srv.Dial(b), kind)
			if err := s.SetPermits(ctx, 10); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				p, err := s.take(ctx, 1)
				mustGive(b, mustTake(b, p, err))
			}
		})
	}
	b.Run("three-locks", func(b *testing.B) {
		m := multi(b, c.Mutex("a"), c.Mutex("b"), c.Mutex("c"))
		b.ReportAllocs()
		for b.Loop() {
			releaseAll(b, acquireAll(b, m))
		}
	})
}
