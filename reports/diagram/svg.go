package diagram

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

// Sizes of the drawing. It fits a narrow screen without being scaled down.
const (
	width     = 372
	top       = 22 // below the headings
	clientX   = 1
	clientW   = 140
	nodeX     = 186
	nodeW     = 166
	cardH     = 50
	gap       = 7 // between two cards
	sentinelH = 22
	maxText   = 25 // runes in a line of a card
	maxName   = 12 // runes of a name beside a badge; without one, 5 more
)

// place is the position and the size of a card.
type place struct{ x, y, w, h int }

// svg collects the elements of a drawing.
type svg struct {
	strings.Builder
	s  *Scene
	at map[string]place
}

// SVG draws the scene at a frame. The script of the page changes texts and classes of the cards, and
// replaces the lines.
func (s *Scene) SVG(f *Frame) template.HTML {
	d := &svg{s: s, at: map[string]place{}}
	height := d.layout(f)
	d.text(clientX, 12, "CLIENTS", "group")
	d.text(nodeX, 12, "NODES", "group")
	switch {
	case len(f.Nodes) == 0:
		d.text(nodeX, top+18, "none is known", "sub")
	case f.why == "":
		d.text(nodeX+nodeW, 12, s.r.Word()+" as sampled", "sub end")
	default:
		d.text(nodeX+nodeW, 12, s.r.Word()+" not sampled", "sub end")
	}
	if len(f.Sentinels) > 0 {
		d.text(nodeX, d.at[f.Sentinels[0].Name].y-6, "SENTINELS", "group")
		d.text(nodeX+nodeW, d.at[f.Sentinels[0].Name].y-6, "not sampled", "sub end")
	}
	d.WriteString(`<g class="lines">`)
	for c := range evidence.Each(f.Nodes) {
		d.says(c)
	}
	for i := range f.Links {
		d.link(&f.Links[i])
	}
	d.WriteString(`</g>`)
	for c := range evidence.Each(f.Clients) {
		d.client(c)
	}
	for c := range evidence.Each(f.Nodes) {
		d.node(c)
	}
	for c := range evidence.Each(f.Sentinels) {
		d.sentinel(c)
	}
	return template.HTML(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="diagram" viewBox="0 0 %d %d" `+
		`role="img" aria-label="%s">%s</svg>`, width, height, timeline.Escape(f.Sentence()), d.String()))
}

// layout places the cards in two columns, of which the shorter one is centered, and returns the height.
func (d *svg) layout(f *Frame) int {
	left, right := (cardH+gap)*len(f.Clients), (cardH+gap)*len(f.Nodes)
	if len(f.Sentinels) > 0 {
		right += 18 + (sentinelH+4)*len(f.Sentinels)
	}
	y := top + max(right-left, 0)/2
	for _, c := range f.Clients {
		d.at[cluster.ClientName(c.Client)] = place{clientX, y, clientW, cardH}
		y += cardH + gap
	}
	y = top + max(left-right, 0)/2
	for _, c := range f.Nodes {
		d.at[c.Name] = place{nodeX, y, nodeW, cardH}
		y += cardH + gap
	}
	y += 18
	for _, c := range f.Sentinels {
		d.at[c.Name] = place{nodeX, y, nodeW, sentinelH}
		y += sentinelH + 4
	}
	return top + max(left, right, cardH)
}

func (d *svg) text(x, y int, text, class string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" class="%s">%s</text>`, x, y, class,
		timeline.Escape(format.Truncate(text, maxText)))
}

// says is a line from a record to the client that it names.
func (d *svg) says(node *Card) {
	client, drawn := d.at[cluster.ClientName(node.Owner)]
	if !drawn || node.Owner < 0 {
		return
	}
	class, n := "says", d.at[node.Name]
	if node.Change {
		class = "says changing"
	}
	fmt.Fprintf(d, `<path class="%s" stroke="%s" d="M%d %dL%d %d"/>`, class,
		timeline.Palette(timeline.ColorOf(d.s.r, node.Owner)), client.x+client.w, client.y+client.h/2, n.x, n.y+28)
}

// link is a cut link: a line across the gap, or an arc beside the nodes.
func (d *svg) link(l *Link) {
	a, b := d.at[l.From], d.at[l.To]
	ax, ay, bx, by := a.x+a.w, a.y+a.h/2, b.x+b.w, b.y+b.h/2
	mx, my := nodeX+nodeW+11, (ay+by)/2
	path := fmt.Sprintf("M%d %dC%d %d %d %d %d %d", ax, ay, ax+14, ay, bx+14, by, bx, by)
	if a.x != b.x {
		bx = b.x
		if ax > bx { // from a node to a client
			ax, bx = a.x, b.x+b.w
		}
		mx, path = (ax+bx)/2, fmt.Sprintf("M%d %dL%d %d", ax, ay, bx, by)
	}
	class := "link"
	if l.Late {
		class = "link late"
	}
	fmt.Fprintf(d, `<g class="%s"><title>%s</title><path d="%s"/><path class="x" d="M%d %dl9 9m0 -9l-9 9"/></g>`,
		class, timeline.Escape(l.Text), path, mx-4, my-4)
}

// look is the class of a card.
func (c *Card) look() string {
	looks := []string{"card"}
	for _, state := range strings.Split(c.State, ", ") {
		switch {
		case state == down || state == dead || state == silent:
			looks = append(looks, "gone")
		case state == paused:
			looks = append(looks, "still")
		case state == unsampled:
			looks = append(looks, "unseen")
		case strings.HasPrefix(state, "cut off from"):
			looks = append(looks, "apart")
		case state != "":
			looks = append(looks, "alone")
		}
	}
	if c.Record == idle {
		looks = append(looks, "quiet")
	}
	return strings.Join(looks, " ")
}

// title is the tooltip of a card.
func (c *Card) title() string {
	text := strings.TrimSpace(c.Name + " " + c.predicate())
	if c.State != "" && c.Faults != "" {
		text += " (" + c.Faults + ")"
	}
	return text
}

// badge is the word in the upper right corner of a card.
func (c *Card) badge() string {
	word, _, _ := strings.Cut(c.State, ", ")
	word, _, _ = strings.Cut(word, " from ")
	switch {
	case c.Role == "":
		return word
	case word == "":
		return c.Role
	}
	return c.Role + ", " + word
}

// what is the middle line of a card, and why the last one.
func (c *Card) what() (what, why string) {
	if c.Client < 0 {
		_, holder, named := strings.Cut(c.Record, ": ")
		if !named { // absent
			holder = c.Record
		}
		return holder, c.Faults
	}
	if what, over, ended := strings.Cut(c.Record, ", "); ended {
		return what, over
	}
	return c.Record, c.Faults
}

func (d *svg) card(c *Card, id string) {
	p, limit := d.at[id], maxName
	if c.badge() == "" {
		limit += 5
	}
	fmt.Fprintf(d, `<g class="%s" data-id="%s" transform="translate(%d %d)"><title>%s</title><rect class="box" `+
		`width="%d" height="%d" rx="5"/>`, c.look(), timeline.Escape(id), p.x, p.y, timeline.Escape(c.title()), p.w, p.h)
	d.text(10, 16, format.Truncate(c.Name, limit), "name")
	d.text(p.w-8, 16, c.badge(), "badge end")
}

const cross = `l9 9m0 -9l-9 9"/>`

func (d *svg) client(c *Card) {
	d.card(c, cluster.ClientName(c.Client))
	what, why := c.what()
	fmt.Fprintf(d, `<rect class="color" width="5" height="%d" rx="2" fill="%s"/>`, cardH,
		timeline.Palette(timeline.ColorOf(d.s.r, c.Client)))
	d.text(10, 31, what, "what")
	d.text(10, 45, why, "why")
	fmt.Fprintf(d, `<path class="cut inner" d="M%d %d%s</g>`, clientW+2, cardH/2-5, cross)
}

func (d *svg) node(c *Card) {
	d.card(c, c.Name)
	what, why := c.what()
	fill, ink := "none", "var(--ink)"
	if c.Owner >= 0 {
		color := timeline.ColorOf(d.s.r, c.Owner)
		fill, ink = timeline.Palette(color), timeline.Ink(color)
	}
	pill := "pill"
	if what == "" {
		pill = "pill bare"
	}
	fmt.Fprintf(d, `<rect class="%s" x="5" y="20" width="%d" height="15" rx="3" fill="%s"/>`, pill, nodeW-10, fill)
	fmt.Fprintf(d, `<text x="10" y="31" class="what" fill="%s">%s</text>`, ink,
		timeline.Escape(format.Truncate(what, maxText)))
	d.text(10, 46, why, "why")
	fmt.Fprintf(d, `<path class="cut inner" d="M-11 %d%s<path class="cut outer" d="M%d %d%s</g>`, cardH/2-5, cross,
		nodeW+3, cardH/2-5, cross)
}

func (d *svg) sentinel(c *Card) {
	d.card(c, c.Name)
	fmt.Fprintf(d, `<path class="cut outer" d="M%d %d%s</g>`, nodeW+3, sentinelH/2-5, cross)
}
