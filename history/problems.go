package history

import "fmt"

// problemKinds merges problems of the same kind, so that, for example, a clock that often goes back takes one line.
type problemKinds map[string]*problemKind

type problemKind struct {
	at    int    // index in the list; -1: the list was full
	first string // text of the first
	more  int    // how many followed
}

// add lists the first problem of a kind, and counts the others in its text. It reports whether there was room.
func (k problemKinds) add(list *[]Problem, kind string, p Problem) bool {
	known := k[kind]
	if known == nil {
		known = &problemKind{at: -1, first: p.Text}
		k[kind] = known
		if len(*list) < maxProblems {
			known.at = len(*list)
			*list = append(*list, p)
		}
		return known.at >= 0
	}
	known.more++
	if known.at >= 0 {
		(*list)[known.at].Text = fmt.Sprintf("%s (and %d more like it)", known.first, known.more)
	}
	return known.at >= 0
}
