package process

import (
	"context"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// BenchmarkStart is how long it takes until the servers of each topology are ready
// for clients: in their roles, and able to replace a master that is killed.
func BenchmarkStart(b *testing.B) {
	for _, kind := range cluster.Topologies() {
		b.Run(kind.Name, func(b *testing.B) {
			for b.Loop() {
				c, err := Start(b.Context(), Config{Topology: cluster.Topology{Kind: kind.Name}, Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := c.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
