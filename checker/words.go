package checker

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// wording is how the violations of one rule, each by operation y of a finding, are put into words. In rule and text a
// word with a dollar sign stands for a fact from [view.wordValue].
type wording struct {
	class Class
	x     evidence
	rule  string
	text  string
}

// evidence is the role of x of a finding in the evidence against operation y; none if x is negative.
type evidence uint8

const (
	nothing   evidence = iota // it adds nothing
	aHold                     // a hold: its grant
	otherHold                 // the same, and its owner is involved
	endedHold                 // the same, with the event that ended the hold, if one did, in place of its grant
	anOp                      // an operation: its completion
	otherOp                   // an operation whose owner is involved: its invocation
)

// word puts a finding into words.
func (v *view) word(f finding, w wording) Violation {
	s := &v.h.Spans[f.y]
	involved, first := []int32{f.y}, int32(-1)
	if f.x >= 0 {
		switch w.x {
		case aHold:
			first = int32(v.granted(&v.holds[f.x]))
		case otherHold:
			involved, first = []int32{v.holds[f.x].span, f.y}, int32(v.granted(&v.holds[f.x]))
		case endedHold:
			involved, first = []int32{v.holds[f.x].span, f.y}, v.holds[f.x].endEvent
		case anOp:
			first = v.h.Spans[f.x].Ended
		case otherOp:
			involved, first = []int32{f.x, f.y}, v.h.Spans[f.x].Invoked
		}
	}
	x := v.involving(w.class, involved...)
	x.Events = []int{int(s.Invoked), int(s.Ended)}
	if first >= 0 {
		x.Events = slices.Concat([]int{int(first)}, x.Events)
	}
	value := func(word string) string { return v.wordValue(word, f, w.x) }
	x.Rule, x.Text = os.Expand(w.rule, value), os.Expand(w.text, value)
	return x
}

// wordValue is the meaning of a word of a [wording]: about operation y, about x, or about the finding itself.
func (v *view) wordValue(word string, f finding, e evidence) string {
	s := &v.h.Spans[f.y]
	switch word {
	case "client":
		return strconv.Itoa(v.client(f.y))
	case "lock":
		return lockName(v.h.Keys[s.Key])
	case "what": // of a semaphore how many permits, too
		if v.h.Limit(s.Key) > 0 {
			return format.Count(s.Permits, "permit") + " of " + lockName(v.h.Keys[s.Key])
		}
		return lockName(v.h.Keys[s.Key])
	case "owner":
		return v.h.Owners[s.Owner]
	case "op":
		return s.Op.String()
	case "did":
		return either(s.Op == history.OpRenew, "renewed", "released")
	case "noun":
		return either(s.Op == history.OpRenew, "renewal", "release")
	case "waiters":
		return format.Count(int(s.Count), "waiter")
	case "count":
		return strconv.Itoa(int(s.Count))
	case "mode":
		return either(s.Write, "write", "read")
	case "opposite":
		return either(s.Write, "read", "write")
	case "call":
		return format.Instant(s.Call)
	case "return":
		return format.Instant(s.Return)
	case "token":
		return strconv.FormatUint(s.Token, 10)
	case "start":
		return format.Instant(f.start)
	case "end":
		return format.Instant(f.end)
	case "length":
		return format.Duration(f.end - f.start)
	case "during":
		return segment{f.start, f.end}.text()
	case "note":
		return fmt.Sprint(f.note)
	}
	if f.x < 0 {
		panic("a violation cannot be put into words: no other hold or operation is known for $" + word)
	}
	if e == anOp || e == otherOp {
		x := &v.h.Spans[f.x]
		return v.otherWordValue(word, &hold{span: f.x, asked: x.Call, from: x.Return, token: x.Token})
	}
	return v.otherWordValue(word, &v.holds[f.x])
}

// otherWordValue is the meaning of a word about x, if that is a hold. Of an operation since is when it returned.
func (v *view) otherWordValue(word string, h *hold) string {
	switch word {
	case "size":
		return strconv.Itoa(int(v.h.Spans[h.span].Asked))
	case "other":
		return strconv.Itoa(v.client(h.span))
	case "former":
		return strconv.FormatUint(h.token, 10)
	case "asked":
		return format.Instant(h.asked)
	case "since":
		return format.Instant(h.from)
	case "until":
		return format.Instant(h.until)
	case "freed":
		return format.Instant(h.freeBy)
	}
	panic("a violation cannot be put into words: nothing is known of $" + word)
}

// either is one of two words.
func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
