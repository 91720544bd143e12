package witness

import (
	"maps"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Limits that keep the history small.
const (
	requestsEvery = 100 * time.Millisecond // the shortest time between two recordings of one node
	mostProcesses = 64                     // with more client processes, no counts are recorded
)

// requestLog reduces the counts of requests in the samples of the servers (history.Received: connections, subscriptions
// and commands of one client) to the counts that changed since they were recorded last.
type requestLog struct {
	perInstance int // number of clients that share one lock object, and so its connections
	nodes       map[string]*nodeRequests
}

// nodeRequests are the counts that were recorded last for one node.
type nodeRequests struct {
	at   time.Duration
	last map[int]history.Received // by client
}

// changes returns the counts in s that differ from the recorded ones of its node, and notes them as recorded; nil if
// the node was recorded less than requestsEvery before.
func (l *requestLog) changes(s history.Sample) (changed []history.Received) {
	recorded := l.nodes[s.Node]
	if recorded == nil {
		recorded = &nodeRequests{at: -requestsEvery, last: map[int]history.Received{}}
		l.nodes[s.Node] = recorded
	}
	if len(s.Received) == 0 || s.Time-recorded.at < requestsEvery {
		return nil
	}
	all := l.byInstance(s.Received)
	if recorded.at = s.Time; len(all) > mostProcesses {
		return nil
	}
	for _, r := range all {
		before, is := recorded.last[r.Client]
		if is && before.Dials == r.Dials && before.Open == r.Open && before.Channels == r.Channels &&
			before.Commands == r.Commands {
			continue
		}
		recorded.last[r.Client] = r
		changed = append(changed, r)
	}
	return changed
}

// byInstance adds up the counts of clients that share a lock object. The client with the smallest number stands for all
// of them.
func (l *requestLog) byInstance(all []history.Received) []history.Received {
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

// sumOf adds up the counts of two clients that share a lock object.
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
