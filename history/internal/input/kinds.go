package input

import "fmt"

// Kinds merges problems of the same kind, so that, for example, a clock that often goes back takes one line.
type Kinds map[string]*kind

type kind struct {
	at    int    // index in the list; -1: the list was full
	first string // text of the first
	more  int    // how many followed
}

// Add lists the first problem of a kind, and counts the others in its text, which text finds. It reports whether there
// was room.
func Add[P any](k Kinds, list *[]P, of string, p P, text func(*P) *string) bool {
	known := k[of]
	if known == nil {
		known = &kind{at: -1, first: *text(&p)}
		k[of] = known
		if len(*list) < MaxProblems {
			known.at = len(*list)
			*list = append(*list, p)
		}
		return known.at >= 0
	}
	known.more++
	if known.at >= 0 {
		*text(&(*list)[known.at]) = fmt.Sprintf("%s (and %d more like it)", known.first, known.more)
	}
	return known.at >= 0
}
