// Package bounds finds the longest times in which owners may have had a key, and the times in which it was certainly
// free.
package bounds

import (
	"sync"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/history"
)

// View adds the longest possible holds.
type View struct {
	*servers.View

	FreeTimes func() *FreeTimes        // see findFreeTimes
	Resizes   func() map[int32]resized // see findResizes
}

// New makes a view of a lock. It uses only the options that the lock and its servers state, Slack and ReportDelay.
func New(h *history.History, o given.Options) *View {
	o.Off = given.DisabledRules{} // rules of one property do not belong to all
	v := &View{View: servers.New(ledger.New(h, o), o)}
	v.FreeTimes = sync.OnceValue(func() *FreeTimes { return v.findFreeTimes(o.Slack()) })
	v.Resizes = sync.OnceValue(v.findResizes)
	return v
}
