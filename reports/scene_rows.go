package reports

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// block is one or more neighbouring stretches of time that are drawn as one,
// because each alone would be thinner than a hair.
type block struct {
	window
	first int // index of the first
	n     int
}

// blocks joins neighbours that are too narrow to be seen alone. Those that keep
// names stay alone whatever their width, so that no violation is ever merged away.
func (d *drawing) blocks(all []window, keep func(i int) bool) []block {
	const hair = 1.6
	var out []block
	open := false
	for i, w := range all {
		thin := d.width(w.from, w.until) < hair && !keep(i)
		if n := len(out); thin && open && d.width(out[n-1].until, w.from) < hair {
			out[n-1].until, out[n-1].n = max(out[n-1].until, w.until), out[n-1].n+1
			continue
		}
		out = append(out, block{w, i, 1})
		open = thin
	}
	return out
}

// shows says whether a stretch of time is in the window.
func (d *drawing) shows(w window) bool { return w.from <= d.win.until && w.until >= d.win.from }

func (s *scene) faults() {
	if len(s.r.faults) == 0 {
		return
	}
	s.group("FAULTS")
	drawn, more := 0, 0
	for i := range s.r.faults {
		f := &s.r.faults[i]
		w := window{f.inject, f.end(s.r.History.End)}
		if !s.d.shows(w) {
			continue
		}
		if drawn == maxFaults {
			more++
			continue
		}
		drawn++
		s.fault(f, w)
	}
	if drawn == 0 {
		s.d.text(sceneLeft, s.y+14, "none in this window", `class="quiet"`)
		s.y += 22
	}
	if more > 0 {
		s.notes = append(s.notes, format.Count(more, "fault")+" more in this window are not drawn")
	}
	s.y += 6
}

func (s *scene) fault(f *faultLife, w window) {
	name := f.name
	if f.target != "" {
		name += " · " + targetName(f.target)
	}
	tip := fmt.Sprintf("%s: injected at %s", name, format.Instant(f.inject))
	if f.heal != history.Infinity {
		tip += ", healed at " + format.Instant(f.heal)
	} else {
		tip += ", not healed"
	}
	s.d.bar(w, s.y+3, 17, tip+". "+f.detail, `class="fault" rx="2"`)
	texts := []string{name}
	if len(f.bites) > 0 && f.bites[0].Detail != "" {
		texts = []string{name + ": " + format.Truncate(f.bites[0].Detail, 60), name}
	}
	s.faultLabel(w, f.bites, texts)
	for _, b := range f.bites {
		if s.d.shows(window{b.Time, b.Time}) {
			s.d.mark(b.Time, s.y+11.5, "bit at "+format.Instant(b.Time)+": "+b.Detail, `<path d="M0-8 5 0 0 8-5 0z" class="bite"/>`)
		}
	}
	s.y += 22
}

// faultLabel writes inside the bar if there is room, else to its right, else to its left.
func (s *scene) faultLabel(w window, bites []history.Fault, texts []string) {
	name := texts[len(texts)-1]
	const attrs = `class="in" fill="#10202c"`
	for i := range bites { // begin after the marks that would lie on the text
		if b := bites[i].Time; b < w.until && s.d.width(w.from, b) < textWidth(texts[0])+20 {
			w.from = max(w.from, b)
		}
	}
	for _, text := range texts {
		if textWidth(text)+24 <= s.d.width(w.from, w.until) {
			s.d.label(max(w.from, s.d.win.from), 12, s.y+15.5, text, attrs)
			return
		}
	}
	if s.d.x(w.until)+textWidth(name)+14 < sceneRight {
		s.d.label(w.until, 10, s.y+15.5, name, attrs)
		return
	}
	s.d.label(max(w.from, s.d.win.from), -6, s.y+15.5, name, attrs+` text-anchor="end"`)
}

func (s *scene) masters() {
	if s.quorum() || len(s.r.Witness) == 0 || len(s.r.seen.nodes) < 2 {
		return
	}
	s.group("MASTER")
	s.d.text(0, s.y+30, "as the nodes said", `class="sub"`)
	top := s.y
	for _, node := range s.r.seen.nodes {
		any := false
		for _, st := range s.r.seen.stretches(node, s.d.win.from, s.d.win.until, sameRole) {
			if !st.first.Up || st.first.Role != "master" || !s.d.shows(window{st.from, st.to}) {
				continue
			}
			any = true
			tip := fmt.Sprintf("%s said that it is master, from %s to %s", s.r.seen.name(node), format.Instant(st.from), format.Instant(st.to))
			s.d.bar(window{st.from, st.to}, s.y+3, 17, tip, `class="master" rx="2"`)
			s.d.inBar(window{st.from, st.to}, s.y+15.5, "#ffffff", s.r.seen.name(node), node)
		}
		if any {
			s.y += 22
		}
	}
	s.y = max(s.y, top+34) + 6
}

func (s *scene) keys() {
	if len(s.r.Witness) == 0 {
		s.notes = append(s.notes, "what the servers had in memory was not watched")
		return
	}
	s.group("KEY AT")
	for i, node := range s.r.seen.nodes {
		if i == maxNodes {
			s.notes = append(s.notes, format.Count(len(s.r.seen.nodes)-i, "node")+" more are not drawn")
			break
		}
		s.d.text(sceneLeft-14, s.y+16, node, `class="row"`)
		s.keyRow(node)
		s.y += 24
	}
	s.y += 6
}

func (s *scene) keyRow(node string) {
	all := s.r.seen.stretches(node, s.d.win.from, s.d.win.until, sameHolder(s.key))
	var wins []window
	for _, st := range all {
		wins = append(wins, window{st.from, st.to})
	}
	for _, b := range s.d.blocks(wins, func(int) bool { return false }) {
		if !s.d.shows(b.window) {
			continue
		}
		st := all[b.first]
		k, held := st.first.Keys[s.key]
		switch {
		case b.n > 1:
			s.d.bar(b.window, s.y+4, 16, fmt.Sprintf("%s: %d short states", node, b.n), `class="many"`)
		case !st.first.Up:
			s.d.bar(b.window, s.y+4, 16, node+" does not answer from "+format.Instant(st.from), `fill="url(#p-down)"`)
			s.d.inBar(b.window, s.y+16, "#51606c", "does not answer", "down")
		case held:
			s.keyHeld(node, b.window, k, st)
		default:
			s.d.level(b.window, s.y+12, node+": free", `class="free"`)
		}
	}
}

func (s *scene) keyHeld(node string, w window, k history.KeyState, st stretch) {
	who, colour := "unknown owner", -1
	if c, ok := s.r.clientOf(k.Owner); ok {
		who, colour = clientName(c), s.colour(c)
	}
	left, leftEnd := ttlText(k.TTL), ttlText(st.last.Keys[s.key].TTL)
	tip := fmt.Sprintf("%s: held by %s (%s); %s at %s, %s at %s", node, who, k.Owner, left, format.Instant(st.from),
		leftEnd, format.Instant(st.last.Time))
	s.d.bar(w, s.y+4, 16, tip, fmt.Sprintf(`fill="%s" rx="2"`, palette(colour)))
	s.d.inBar(w, s.y+16, inkOn(max(colour, 0)), who+" · "+left, who, strings.TrimPrefix(who, "client "))
}

func ttlText(ttl time.Duration) string {
	if ttl < 0 {
		return "no expiry"
	}
	return format.Duration(ttl) + " left"
}

// clientOf is the client that an owner seen at a server belongs to.
func (r *Run) clientOf(owner string) (int, bool) {
	if c, ok := r.ownerOf[owner]; ok {
		return c, true
	}
	for id, c := range r.ownerOf {
		if sameOwner(owner, id) {
			return c, true
		}
	}
	return 0, false
}

func (s *scene) colour(client int) int {
	if i, ok := s.r.colour[client]; ok {
		return i
	}
	return client
}

func (s *scene) overlaps() {
	name := "OVERLAP"
	if s.v != nil && s.pair == nil {
		name = "VIOLATION"
	}
	s.group(name)
	seen := map[window]bool{}
	for _, res := range s.r.Judgement.Results {
		if res.Outcome != checker.Violated || res.Property == checker.Bite {
			continue
		}
		for i := range res.Violations {
			v := &res.Violations[i]
			w := s.r.during(v)
			if seen[w] || !s.d.shows(w) || s.pair != nil && !overlaps(res.Property) {
				continue
			}
			seen[w] = true
			s.overlap(w, v)
		}
	}
	if len(seen) == 0 && s.r.Judged {
		s.d.text(sceneLeft, s.y+16, "none", `class="good"`)
	}
	s.y += 28
}

func (s *scene) overlap(w window, v *checker.Violation) {
	wide := w
	for s.d.width(wide.from, wide.until) < 3 && wide.until < s.d.win.until {
		wide.until += s.d.win.length()/1000 + 1
	}
	s.d.bar(wide, s.y+3, 19, v.Text, `class="red" rx="2"`)
	text := format.Duration(w.length())
	if w.length() == 0 {
		text = format.Instant(w.from)
	}
	if textWidth(text)+12 <= s.d.width(w.from, w.until) {
		mid := max(w.from, s.d.win.from)
		s.d.label(mid, 7, s.y+17, text, `class="in strong" fill="#ffffff"`)
		return
	}
	if s.d.x(wide.until)+textWidth(text)+10 > sceneRight {
		s.d.label(wide.from, -6, s.y+17, text, `class="in strong redtext" text-anchor="end"`)
		return
	}
	s.d.label(wide.until, 6, s.y+17, text, `class="in strong redtext"`)
}
