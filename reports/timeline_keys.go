package reports

import (
	"cmp"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/format"
)

func (t *timeline) keys() {
	if len(t.r.Samples) == 0 {
		t.notes = append(t.notes, "Nodes were not sampled")
		return
	}
	t.group(t.r.keyAt())
	for i, node := range t.r.witness.nodes {
		if i == maxNodes {
			t.notDrawn(len(t.r.witness.nodes)-i, "node", "")
			break
		}
		t.d.text(axisLeft-14, t.y+16, node, `class="row"`)
		t.keyRow(node)
		t.y += 24
	}
	t.y += 6
}

func (t *timeline) keyRow(node string) {
	all := t.r.witness.states(node, t.d.window, t.r.sameHolder(t.key))
	var wins []interval
	for _, st := range all {
		wins = append(wins, st.interval)
	}
	for _, b := range t.d.blocks(wins, func(int) bool { return false }) {
		if !t.d.shows(b.interval) {
			continue
		}
		st := all[b.first]
		_, held := st.first.Keys[t.key]
		switch {
		case b.n > 1:
			t.d.bar(b.interval, t.y+4, 16, fmt.Sprintf("%s: %s", node, format.Count(b.n, "short state")), `class="many"`)
		case !st.first.Up:
			t.d.bar(b.interval, t.y+4, 16, node+" does not reply from "+format.Instant(st.from), `fill="url(#p-down)"`)
			t.d.labelBar(b.interval, t.y+16, "var(--soft)", "does not reply", "down")
		case held:
			t.keyHeld(node, b.interval, st)
		default:
			t.d.level(b.interval, t.y+12, node+": free", `class="free"`)
		}
	}
}

func (t *timeline) keyHeld(node string, w interval, st nodeState) {
	who := t.r.heldBy(t.key, &st.first)
	color := -1
	if who.client >= 0 {
		color = t.r.colorOf(who.client)
	}
	k := st.first.Keys[t.key]
	left, leftEnd := t.r.ttlText(k), t.r.ttlText(st.last.Keys[t.key])
	tip := fmt.Sprintf("%s: %s (%s); %s at %s", node, who.label, cmp.Or(k.Owner, "no owner is stored"), left,
		format.Instant(st.from))
	switch {
	case format.Instant(st.last.Time) == format.Instant(st.from): // one sample, or two that follow at once
	case left == leftEnd:
		tip += ", and still at " + format.Instant(st.last.Time)
	default:
		tip += fmt.Sprintf(", %s at %s", leftEnd, format.Instant(st.last.Time))
	}
	look, ink := "", inkOn(max(color, 0))
	if who.earlier { // paler than the palette: the ink on it is that of the page
		look, ink = ` opacity=".6"`, "var(--pale-ink)"
	}
	t.d.bar(w, t.y+4, 16, tip, fmt.Sprintf(`fill="%s" rx="2"%s`, palette(color), look))
	t.d.labelBar(w, t.y+16, ink, who.label+" · "+left, who.label, who.short)
}
