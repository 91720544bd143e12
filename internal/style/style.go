// Package style holds the house rules of this project as tests of the project
// itself: sizes, imports, catalogues, and what the tests may not do. It has no
// code of its own. Start with the constants here; the rules are in docs/design.md.
package style

// Sizes are hard limits, in lines, characters and counts. There is no ratchet
// and no list of exceptions.
const (
	maxFuncLines = 70
	maxFileLines = 400
	maxLineRunes = 120
	maxMethods   = 4 // of an interface
	maxParams    = 5 // besides ctx
	maxNesting   = 4
)
