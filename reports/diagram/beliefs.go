package diagram

import (
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// crashed reports whether a client ended before t and has not called since.
func (s *Scene) crashed(client int, t time.Duration) bool {
	end := evidence.LastOf(s.r.History.Notices, func(n *history.Notice) bool {
		return n.F == history.Crash && s.r.ClientIn(n.Process) == client && n.Time <= t
	})
	if end == nil {
		return false
	}
	return evidence.FirstOf(s.r.History.Spans, func(x *history.Span) bool {
		return s.r.ClientIn(x.Process) == client && x.Call > end.Time && x.Call <= t
	}) == nil && evidence.FirstOf(s.on[cluster.ClientName(client)], func(f **evidence.Fault) bool {
		return (*f).EndsProcess() && (*f).Heal > end.Time && (*f).Heal <= t
	}) == nil
}

// belief is what a client believes about the lock, as its operations show.
type belief struct {
	holds, waits, releases bool
	unanswered             bool // its last request has an unknown outcome
	over                   bool // the validity of the hold has ended
	reads, writes          bool // the modes of its holds
	permits                int
}

func (b belief) text() string {
	var text string
	switch {
	case b.holds && b.permits > 0:
		text = "believes it holds, " + format.Count(b.permits, "permit")
	case b.holds && b.writes:
		text = "believes it holds, writing"
	case b.holds && b.reads:
		text = "believes it holds, reading"
	case b.holds:
		text = "believes it holds"
	case b.releases:
		return "releases"
	case b.waits:
		return "waits"
	case b.unanswered:
		return "asked, outcome unknown"
	default:
		return idle
	}
	if b.over {
		text += ", validity over"
	}
	return text
}

func (s *Scene) beliefs(t time.Duration) map[int]belief {
	all, ended := map[int]belief{}, map[int]time.Duration{} // with its process, a client forgets its requests
	for n := range evidence.Each(s.r.History.Notices) {
		if n.F == history.Crash && n.Time <= t {
			ended[s.r.ClientIn(n.Process)] = n.Time
		}
	}
	for h := range evidence.Each(s.r.Holds) {
		if s.r.KeyName(h.Key) != s.key || h.From > t || t >= h.To && h.End != checker.StillHeld {
			continue
		}
		b := all[h.Client]
		b.holds, b.permits = true, b.permits+int(h.Permits)
		mode := s.r.ModeOf(h)
		b.reads, b.writes = b.reads || mode == evidence.Reading, b.writes || mode == evidence.Writing
		b.over = h.DrawnValidity() > 0 && h.DrawnValidity() <= t
		all[h.Client] = b
	}
	for x := range evidence.Each(s.r.History.Spans) {
		c := s.r.ClientIn(x.Process)
		if s.r.KeyName(x.Key) != s.key || x.Call > t || x.Call < ended[c] {
			continue
		}
		b, takes, ends := all[c], evidence.Taking(x), x.Op.String() == history.Release
		pending := t < s.r.Completed(x)
		b.unanswered = !pending && x.Outcome == history.Info && (takes || ends)
		if pending {
			b.waits, b.releases = b.waits || takes, b.releases || ends
		}
		all[c] = b
	}
	return all
}
