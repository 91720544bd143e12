package reports

// assignColors gives every client a color. The clients of the worst violation
// get the first ones, which differ most.
func (r *Run) assignColors() map[int]int {
	color := map[int]int{}
	add := func(c int) {
		if _, ok := color[c]; !ok && c >= 0 {
			color[c] = len(color)
		}
	}
	if v := r.worst; v != nil {
		for _, c := range v.Clients {
			add(c)
		}
	}
	for s := range each(r.History.Spans) {
		add(r.clientIn(s.Process))
	}
	return color
}

// writeStory finds the violation that the page explains, its cause and the story of the run.
func writeStory(r *Run) {
	e := r.explain()
	r.worst = e.v
	r.story = newStory(r, e)
	r.color = r.assignColors()
}
