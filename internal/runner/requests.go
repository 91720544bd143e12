package runner

import (
	"maps"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Limits of what is recorded of requests: with more than mostProcesses processes, nothing is.
const (
	requestsEvery = 100 * time.Millisecond // at most, of each node
	mostProcesses = 64
)

// requestLog keeps what was last recorded of the requests of each client process, so that only changes are recorded.
type requestLog struct {
	perInstance int // clients that share a lock object
	nodes       map[string]*nodeRequests
}

// nodeRequests is what was last recorded of one node, and when.
type nodeRequests struct {
	at   time.Duration
	last map[int]history.Received // by client
}

// news are the requests of s that differ from what was last recorded of its node; nil if that was not long ago.
func (l *requestLog) news(s history.Sample) (changed []history.Received) {
	known := l.nodes[s.Node]
	if known == nil {
		known = &nodeRequests{at: -requestsEvery, last: map[int]history.Received{}}
		l.nodes[s.Node] = known
	}
	if len(s.Received) == 0 || s.Time-known.at < requestsEvery {
		return nil
	}
	all := l.joined(s.Received)
	if known.at = s.Time; len(all) > mostProcesses {
		return nil
	}
	for _, r := range all {
		before, is := known.last[r.Client]
		if is && before.Dials == r.Dials && before.Open == r.Open && before.Channels == r.Channels &&
			before.Commands == r.Commands {
			continue
		}
		known.last[r.Client] = r
		changed = append(changed, r)
	}
	return changed
}

// joined adds up what was received from clients that share a lock object: one of them opened its connections.
func (l *requestLog) joined(all []history.Received) []history.Received {
	if l.perInstance < 2 {
		return all
	}
	var out []history.Received
	for _, r := range all {
		r.Client -= r.Client % l.perInstance
		r.Clients = l.perInstance
		if n := len(out) - 1; n >= 0 && out[n].Client == r.Client {
			r = sumOf(out[n], r)
			out = out[:n]
		}
		out = append(out, r)
	}
	return out
}

// sumOf is the sum of two clients that share a lock object.
func sumOf(a, b history.Received) history.Received {
	a.Dials += b.Dials
	a.Open += b.Open
	a.Channels += b.Channels
	a.Commands += b.Commands
	if a.Keys = maps.Clone(a.Keys); a.Keys == nil {
		a.Keys = map[string]int{}
	}
	for key, n := range b.Keys {
		a.Keys[key] += n
	}
	return a
}
