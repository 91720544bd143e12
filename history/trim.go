package history

import "slices"

// Trim removes the completed spans, the notices and the touches that the functions do not keep, and the owners that
// nothing refers to any more; indices change. Open spans, keys, faults and problems stay. So a run of any length can be
// checked in bounded memory.
func (b *Builder) Trim(span func(i int32, s *Span) bool, notice func(n *Notice) bool,
	touch func(i int32, t *Touched) bool) {
	to, next := make([]int32, len(b.h.Spans)), int32(0) // old index to new one, or -1
	b.h.Spans = kept(b.h.Spans, func(i int32, s *Span) bool {
		if s.Ended >= 0 && !span(i, s) {
			to[i] = -1
			return false
		}
		to[i] = next
		next++
		return true
	})
	b.h.Unknown = about(b.h.Unknown, func(u *Unknown) *int32 { return &u.Span }, to)
	b.h.Failures = about(b.h.Failures, func(f *Failure) *int32 { return &f.Span }, to)
	b.h.Mistimed = about(b.h.Mistimed, func(m *Mistimed) *int32 { return &m.Span }, to)
	b.h.Closings = about(b.h.Closings, func(c *Closing) *int32 { return &c.Span }, to)
	b.h.Contradicted = about(b.h.Contradicted, func(c *Contradiction) *int32 { return &c.Span }, to)
	for _, list := range []*[]int32{&b.h.TimedOut, &b.h.OneHeld, &b.h.Unanswered, &b.h.Reentered, &b.h.Upgrades,
		&b.h.Foreign, &b.h.NotSetUp, &b.h.OutOfRange} {
		*list = about(*list, func(i *int32) *int32 { return i }, to)
	}
	b.h.Notices = kept(b.h.Notices, func(_ int32, n *Notice) bool { return notice(n) })
	b.h.Touches = kept(b.h.Touches, touch)
	b.reopen()
	b.trimOwners()
}

// kept are the elements of a list that satisfy keeps, by index.
func kept[T any](list []T, keeps func(i int32, v *T) bool) []T {
	all := list[:0:0]
	for i := range list {
		if keeps(int32(i), &list[i]) {
			all = append(all, list[i])
		}
	}
	return all
}

// about are the entries of list whose span is kept, with its new index.
func about[T any](list []T, span func(*T) *int32, to []int32) []T {
	return kept(slices.Clone(list), func(_ int32, v *T) bool {
		s := span(v)
		*s = to[*s]
		return *s >= 0
	})
}

// reopen recomputes the open operations of each process.
func (b *Builder) reopen() {
	b.open = make(map[Process]*openOps)
	for i := range b.h.Spans {
		s := &b.h.Spans[i]
		if s.Ended >= 0 {
			continue
		}
		open := b.open[s.Process]
		if open == nil {
			open = new(openOps)
			b.open[s.Process] = open
		}
		open.add(int32(i), b.h.Spans)
	}
}

// trimOwners removes the owners that nothing refers to. A later event without an owner is not
// attributed to a removed one.
func (b *Builder) trimOwners() {
	to := make([]int32, len(b.h.Owners)) // old index to 1 + new one; 0: not referred to
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
	holder := make(map[processKey]int32)
	for at, owner := range b.holder { // order does not matter
		if to[owner] > 0 {
			holder[at] = to[owner] - 1
		}
	}
	b.h.Owners, b.owners, b.holder = names, index, holder
}
