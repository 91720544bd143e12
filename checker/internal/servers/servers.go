// Package servers reads the samples of the servers' data: which holds each server kept, and when.
package servers

import (
	"sync"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
)

// View adds the samples of servers.
type View struct {
	*ledger.View

	Samples func() *NodeSamples // see readSamples
	Records func() *NodeSamples // see readRecords
}

// New adds the samples to a view.
func New(l *ledger.View, o given.Options) *View {
	v := &View{View: l}
	v.Samples = sync.OnceValue(func() *NodeSamples { return v.readSamples(o) })
	v.Records = sync.OnceValue(func() *NodeSamples { return v.readRecords(o) })
	v.Homes = sync.OnceValue(func() []string { return v.findHomes(o.NodeTimeout) })
	return v
}
