package history

// Pairing is the history as far as it has been read, for whoever judges it while
// it goes on; the builder changes it with the next event. Operations that are open have no
// completion, and are of unknown outcome.
func (b *Builder) Current() *History { return b.h }

// Keep says what [Builder.Trim] leaves.
type Keep struct {
	Span   func(i int32, s *Span) bool // of those that are completed
	Notice func(n *Notice) bool
	Touch  func(i int32, t *Touched) bool
}

// Trim forgets completed operations, notices and touches, and the owners that
// nothing speaks of any more; indices change. Keys, faults and problems stay. So
// a run of any length can be judged in the memory of what is under way.
func (b *Builder) Trim(keep Keep) {
	to := make([]int32, len(b.h.Spans)) // by old index: the new one, or -1
	spans := b.h.Spans[:0:0]
	for i := range b.h.Spans {
		s := &b.h.Spans[i]
		if to[i] = -1; s.Ended < 0 || keep.Span(int32(i), s) {
			to[i] = int32(len(spans))
			spans = append(spans, *s)
		}
	}
	b.h.Spans = spans
	unknown := b.h.Unknown[:0:0]
	for _, u := range b.h.Unknown {
		if u.Span = to[u.Span]; u.Span >= 0 {
			unknown = append(unknown, u)
		}
	}
	gaveUp := b.h.TimedOut[:0:0]
	for _, i := range b.h.TimedOut {
		if to[i] >= 0 {
			gaveUp = append(gaveUp, to[i])
		}
	}
	b.h.Unknown, b.h.TimedOut = unknown, gaveUp
	notices := b.h.Notices[:0:0]
	for i := range b.h.Notices {
		if n := &b.h.Notices[i]; keep.Notice(n) {
			notices = append(notices, *n)
		}
	}
	touches := b.h.Touches[:0:0]
	for i := range b.h.Touches {
		if t := &b.h.Touches[i]; keep.Touch(int32(i), t) {
			touches = append(touches, *t)
		}
	}
	b.h.Notices, b.h.Touches = notices, touches
	b.reopen()
	b.forgetOwners()
}

// reopen finds the open operations of each process again.
func (b *Builder) reopen() {
	b.open = make(map[Process]*opened)
	for i := range b.h.Spans {
		s := &b.h.Spans[i]
		if s.Ended >= 0 {
			continue
		}
		open := b.open[s.Process]
		if open == nil {
			open = new(opened)
			b.open[s.Process] = open
		}
		open.add(int32(i), b.h.Spans)
	}
}

// forgetOwners keeps the owners that something still speaks of. Who acquired
// last, and is forgotten, is not who an event without an owner means.
func (b *Builder) forgetOwners() {
	to := make([]int32, len(b.h.Owners)) // by old index: 1 + the new one
	var names []string
	index := make(map[string]int32)
	move := func(owner *int32) {
		if to[*owner] == 0 {
			name := b.h.Owners[*owner]
			index[name] = int32(len(names))
			names = append(names, name)
			to[*owner] = int32(len(names))
		}
		*owner = to[*owner] - 1
	}
	for i := range b.h.Spans {
		move(&b.h.Spans[i].Owner)
	}
	for i := range b.h.Notices {
		move(&b.h.Notices[i].Owner)
	}
	for i := range b.h.Touches {
		move(&b.h.Touches[i].Owner)
	}
	holder := make(map[place]int32)
	for at, owner := range b.holder { // order does not matter
		if to[owner] > 0 {
			holder[at] = to[owner] - 1
		}
	}
	b.h.Owners, b.owners, b.holder = names, index, holder
}
