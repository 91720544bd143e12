package timeline

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// keyAt is the name of the rows of nodes.
func keyAt(r *evidence.Run) string { return strings.ToUpper(r.Word()) + " AT" }

func (t *Timeline) keys() {
	if why := t.r.Unsampled(); why != "" {
		t.notes = append(t.notes, "No rows "+keyAt(t.r)+": "+why)
		return
	}
	t.group(keyAt(t.r))
	for i, node := range t.r.Witness.Nodes {
		if i == maxNodes {
			t.notDrawn(len(t.r.Witness.Nodes)-i, "node", "")
			break
		}
		t.D.text(axisLeft-14, t.y+16, node, `class="row"`)
		t.keyRow(node)
		t.y += 24
	}
	t.y += 6
}

func (t *Timeline) keyRow(node string) {
	all := t.r.Witness.States(node, t.D.Window, t.r.SameHolder(t.Key))
	var wins []evidence.Interval
	for _, st := range all {
		wins = append(wins, st.Interval)
	}
	for _, b := range t.D.blocks(wins, func(int) bool { return false }) {
		if !t.D.shows(b.Interval) {
			continue
		}
		st := all[b.first]
		_, held := st.First.Keys[t.Key]
		switch {
		case b.n > 1:
			t.D.bar(b.Interval, t.y+4, 16, fmt.Sprintf("%s: %s", node, format.Count(b.n, "short state")), `class="many"`)
		case !st.First.Up:
			t.D.bar(b.Interval, t.y+4, 16, node+" does not reply from "+format.Instant(st.From), `fill="url(#p-down)"`)
			t.D.labelBar(b.Interval, t.y+16, "var(--soft)", "does not reply", "down")
		case held:
			t.keyHeld(node, b.Interval, st)
		default:
			t.D.level(b.Interval, t.y+12, node+": free", `class="free"`)
		}
	}
}

func (t *Timeline) keyHeld(node string, w evidence.Interval, st evidence.NodeState) {
	who := t.r.HeldBy(t.Key, &st.First)
	color := -1
	if who.Client >= 0 {
		color = ColorOf(t.r, who.Client)
	}
	k := st.First.Keys[t.Key]
	left, leftEnd := t.r.ExpiryText(k), t.r.ExpiryText(st.Last.Keys[t.Key])
	tip := fmt.Sprintf("%s: %s (%s); %s at %s", node, who.Label, cmp.Or(k.Owner, "no owner is stored"), left,
		format.Instant(st.From))
	switch {
	case format.Instant(st.Last.Time) == format.Instant(st.From): // one sample, or two that follow at once
	case left == leftEnd:
		tip += ", and still at " + format.Instant(st.Last.Time)
	default:
		tip += fmt.Sprintf(", %s at %s", leftEnd, format.Instant(st.Last.Time))
	}
	look, ink := "", Ink(max(color, 0))
	if who.Earlier { // paler than the palette: with the ink of the page
		look, ink = ` opacity=".6"`, "var(--pale-ink)"
	}
	t.D.bar(w, t.y+4, 16, tip, fmt.Sprintf(`fill="%s" rx="2"%s`, Palette(color), look))
	t.D.labelBar(w, t.y+16, ink, who.Label+" · "+left, who.Label, who.Short)
}
