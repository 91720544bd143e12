// Package promise is promised API: the list of the promises that a lock can state, which are operations that it has,
// and guarantees that it gives. A client states its promises in the reply to init (docs/reference/protocol.md); the
// harness neither requests operations nor judges guarantees that a lock does not state.
//
// Read [Catalog] first: it has one row for each promise. A [Set] is a value; all functions may be called concurrently.
package promise

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

// Set is a set of promises. Each of the constants is the set of one promise, so that they are combined with |:
// promise.Try | promise.Renew. The zero value is the empty set.
type Set uint64

// Promise is a row of the [Catalog].
type Promise struct {
	Set     Set      // the set of this promise alone
	Name    string   // in the reply to init
	Meaning string   // the predicate of a sentence that begins with "the lock", in Markdown
	Ops     []string // operations that only such a lock gets
	Fields  []string // fields of requests that only such a lock gets, as op.field
	Replies []string // fields and notices that such a lock has to send, as op.field or event
	House   bool     // stated by the locks of this project alone, by no other library in adapters/
	Former  []string // names that it, or a promise that is now a part of it, had before
}

// Common returns the promises of locks that are used together: the promises that all of them have, and [Unleased] if
// one of them has it, because it states the lack of a feature. Without locks it is empty.
func Common(locks ...Set) Set {
	if len(locks) == 0 {
		return 0
	}
	common, all := All, Set(0)
	for _, s := range locks {
		common, all = common&s, all|s
	}
	return common | all&Unleased
}

// Has reports whether s contains all of these.
func (s Set) Has(all Set) bool { return s&all == all }

// Any reports whether s contains one of these.
func (s Set) Any(some Set) bool { return s&some != 0 }

// With is s and more.
func (s Set) With(more Set) Set { return s | more }

// Without is s without some.
func (s Set) Without(some Set) Set { return s &^ some }

// Names lists the promises by their names, in the order of [Catalog].
func (s Set) Names() []string {
	names := make([]string, 0, bits.OnesCount64(uint64(s)))
	for i := range rows {
		if s.Has(rows[i].Set) {
			names = append(names, rows[i].Name)
		}
	}
	return names
}

// String is the names, separated by commas.
func (s Set) String() string { return strings.Join(s.Names(), ", ") }

// MarshalJSON writes a list of names.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// UnmarshalJSON reads a list of names. Its error is [Parse]'s if one of them does not exist.
func (s *Set) UnmarshalJSON(text []byte) error {
	return s.decode(func(names any) error { return json.Unmarshal(text, names) })
}

// UnmarshalYAML reads a list of names. Its error is [Parse]'s if one of them does not exist.
func (s *Set) UnmarshalYAML(decode func(any) error) error { return s.decode(decode) }

func (s *Set) decode(into func(names any) error) error {
	var names []string
	if err := into(&names); err != nil {
		return err
	}
	parsed, err := Parse(names...)
	if err == nil {
		*s = parsed
	}
	return err
}

// UnknownError is the error of a name that is not in the [Catalog]: if the harness ignored it, it would not test a
// promise that the author of the lock believes to be tested.
type UnknownError struct {
	Name string
	hint string
}

// Error names the nearest name that exists.
func (e *UnknownError) Error() string { return fmt.Sprintf("unknown promise %q%s", e.Name, e.hint) }

// Parse is the set of the promises of these names. Its error is an [UnknownError].
func Parse(names ...string) (Set, error) {
	var s Set
	for _, name := range names {
		row := find(func(p *Promise) bool { return p.Name == name })
		if row == nil {
			return 0, &UnknownError{name, hint(name)}
		}
		s |= row.Set
	}
	return s, nil
}

// hint is the name to use instead of an unknown one.
func hint(name string) string {
	if row := find(func(p *Promise) bool { return slices.Contains(p.Former, name) }); row != nil {
		return fmt.Sprintf(" (did you mean %s?)", row.Name)
	}
	return nearest.Or(name, All.Names(), "; docs/reference/protocol.md lists those that exist")
}

// NeededFor is the promise without which a lock does not get the operation; empty: every lock gets it.
func NeededFor(op string) Set {
	if row := find(func(p *Promise) bool { return slices.Contains(p.Ops, op) }); row != nil {
		return row.Set
	}
	return 0
}

// find is the first row that fits; nil: none does.
func find(fits func(*Promise) bool) *Promise {
	for i := range rows {
		if fits(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

// Catalog returns a row for each promise: the portable ones first, which locks of other libraries state too.
func Catalog() []Promise { return slices.Clone(rows) }
