package finding

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Rule is a rule of a property. Violations, each by operation y of a finding, are put into words: in sentence and text
// a word with a dollar sign stands for a fact from [wordValue]. A rule that acquits has a name alone, as has one whose
// property finds the words itself.
type Rule struct {
	Name     string // in lists and tests
	Class    property.Class
	X        evidence
	Sentence string // the rule
	Text     string // the violation
}

// Rules are the rules of a property, by their numbers.
type Rules []Rule

// With has the rules of two parts of a table that have different numbers.
func (r Rules) With(more Rules) Rules {
	all := append(slices.Clone(r), make(Rules, max(0, len(more)-len(r)))...)
	for i, rule := range more {
		if rule.Name != "" {
			all[i] = rule
		}
	}
	return all
}

// Names are the names of the rules; "" is a number without a rule.
func (r Rules) Names() (names []string) {
	for _, rule := range r {
		names = append(names, rule.Name)
	}
	return names
}

// evidence is the role of x of a finding in the evidence against operation y; none if x is negative.
type evidence uint8

const (
	Nothing   evidence = iota // it adds nothing
	AHold                     // a hold: its grant
	OtherHold                 // the same, and its owner is involved
	EndedHold                 // the same, with the event that ended the hold, if one did, in place of its grant
	AnOp                      // an operation: its completion
	OtherOp                   // an operation whose owner is involved: its invocation
)

// Word puts a finding into words.
func Word(v *bounds.View, f Finding, w Rule) property.Violation {
	s := &v.H.Spans[f.Y]
	involved, first := []int32{f.Y}, int32(-1)
	if f.X >= 0 {
		switch w.X {
		case AHold:
			first = int32(v.Granted(&v.Holds[f.X]))
		case OtherHold:
			involved, first = []int32{v.Holds[f.X].Span, f.Y}, int32(v.Granted(&v.Holds[f.X]))
		case EndedHold:
			involved, first = []int32{v.Holds[f.X].Span, f.Y}, v.Holds[f.X].EndEvent
		case AnOp:
			first = v.H.Spans[f.X].Ended
		case OtherOp:
			involved, first = []int32{f.X, f.Y}, v.H.Spans[f.X].Invoked
		}
	}
	x := Involving(v, w.Class, involved...)
	x.Events = []int{int(s.Invoked), int(s.Ended)}
	if first >= 0 {
		x.Events = slices.Concat([]int{int(first)}, x.Events)
	}
	value := func(word string) string { return wordValue(v, word, f, w.X) }
	x.Rule, x.Text = os.Expand(w.Sentence, value), os.Expand(w.Text, value)
	return x
}

// wordValue is the meaning of a word of a [Rule]: about operation y, about x, or about the finding itself.
func wordValue(v *bounds.View, word string, f Finding, e evidence) string {
	s := &v.H.Spans[f.Y]
	switch word {
	case "client":
		return strconv.Itoa(v.Client(f.Y))
	case "lock":
		return LockName(v.H.Keys[s.Key])
	case "what": // of a semaphore how many permits, too
		if v.H.Limit(s.Key) > 0 {
			return format.Count(s.Permits, "permit") + " of " + LockName(v.H.Keys[s.Key])
		}
		return LockName(v.H.Keys[s.Key])
	case "owner":
		return v.H.Owners[s.Owner]
	case "op":
		return s.Op.String()
	case "did":
		return Either(s.Op == history.OpRenew, "renewed", "released")
	case "noun":
		return Either(s.Op == history.OpRenew, "renewal", "release")
	case "waiters":
		return format.Count(int(s.Count), "waiter")
	case "count":
		return strconv.Itoa(int(s.Count))
	case "mode":
		return Either(s.Write, "write", "read")
	case "opposite":
		return Either(s.Write, "read", "write")
	case "call":
		return format.Instant(s.Call)
	case "return":
		return format.Instant(s.Return)
	case "token":
		return strconv.FormatUint(s.Token, 10)
	case "start":
		return format.Instant(f.Start)
	case "end":
		return format.Instant(f.End)
	case "length":
		return format.Duration(f.End - f.Start)
	case "during":
		return segment.Of(f.Start, f.End).Text()
	case "note":
		return fmt.Sprint(f.Note)
	}
	if f.X < 0 {
		panic("a violation cannot be put into words: no other hold or operation is known for $" + word)
	}
	if e == AnOp || e == OtherOp {
		x := &v.H.Spans[f.X]
		return otherWordValue(v, word, &ledger.Hold{Span: f.X, Asked: x.Call, From: x.Return, Token: x.Token})
	}
	return otherWordValue(v, word, &v.Holds[f.X])
}

// otherWordValue is the meaning of a word about x, if that is a hold. Of an operation since is when it returned.
func otherWordValue(v *bounds.View, word string, h *ledger.Hold) string {
	switch word {
	case "size":
		return strconv.Itoa(int(v.H.Spans[h.Span].Asked))
	case "other":
		return strconv.Itoa(v.Client(h.Span))
	case "former":
		return strconv.FormatUint(h.Token, 10)
	case "asked":
		return format.Instant(h.Asked)
	case "since":
		return format.Instant(h.From)
	case "until":
		return format.Instant(h.Until)
	case "freed":
		return format.Instant(h.FreeBy)
	}
	panic("a violation cannot be put into words: nothing is known of $" + word)
}

// Either is one of two words.
func Either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
