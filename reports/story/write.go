package story

import "github.com/lockchaos/lockchaos/reports/evidence"

// assignColors gives every client a color. The clients of the worst violation
// get the first ones, which differ most.
func assignColors(r *evidence.Run) map[int]int {
	color := map[int]int{}
	add := func(c int) {
		if _, ok := color[c]; !ok && c >= 0 {
			color[c] = len(color)
		}
	}
	if v := r.Worst; v != nil {
		for _, c := range v.Clients {
			add(c)
		}
	}
	for s := range evidence.Each(r.History.Spans) {
		add(r.ClientIn(s.Process))
	}
	return color
}

// Write finds the violation that the page explains, its cause and the story of the run.
func Write(r *evidence.Run) {
	e := explain(r)
	r.Worst = e.v
	r.Story = newStory(r, e)
	r.Color = assignColors(r)
}
