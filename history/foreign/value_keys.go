package foreign

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// ValueKeys says whether the values of a history without keys name several locks.
type ValueKeys struct {
	Path    string // for Options.Key; empty: the values name none
	Certain bool   // nothing contradicts that, and they are unlikely to have another meaning
}

// OneLock is the [Options.Key] of a history of one lock, whatever its values are.
const OneLock = "key"

// The paths of [ValueKeys].
const (
	tupleKey  = "value.0" // the first element of a tuple, as in Jepsen's independent
	scalarKey = "value"
)

// maxValueKeys is up to how many pairs of a process and a value are compared. Values of more are not names of locks.
const maxValueKeys = 1 << 16

// valueKeys finds out whether the values of operations on locks without a key are names of locks.
type valueKeys struct {
	operations, tuples, scalars, empty int // invocations
	bare                               int // tuples whose second element is nil
	contradicted                       bool
	asked                              map[history.Process]string // the first element of the tuple of its operation
	acquired                           map[valueUse]bool
	user                               map[string]history.Process // of a name
	shared                             bool                       // several processes have the same name
	released, strange                  int                        // scalars of releases: acquired before, or not
}

// valueUse is a process that acquired a lock with a value.
type valueUse struct {
	by    history.Process
	value string
}

// note notes the value of an operation on a lock that has no key.
func (k *valueKeys) note(form edn.Value, e *history.Event) {
	if !slices.Contains([]string{history.Acquire, history.Try, history.Release, history.Renew}, e.F) {
		return
	}
	if k.asked == nil {
		k.asked, k.acquired = make(map[history.Process]string), make(map[valueUse]bool)
		k.user = make(map[string]history.Process)
	}
	v, _ := form.Get("value")
	v = v.Untagged()
	tuple := (v.Kind == edn.Vector || v.Kind == edn.List) && len(v.Items) == 2 && isName(v.Items[0])
	if e.Type != history.Invoke {
		k.contradicted = k.contradicted || tuple && k.asked[e.Process] != plainText(v.Items[0])
		return
	}
	k.operations++
	switch {
	case tuple:
		if k.tuples++; v.Items[1].Untagged().Kind == edn.Nil {
			k.bare++
		}
		k.asked[e.Process] = plainText(v.Items[0])
		k.uses(k.asked[e.Process], e.Process)
	case isName(v):
		k.scalars++
		k.scalar(plainText(v), e)
	case v.Kind == edn.Nil:
		k.empty++
	}
}

// isName reports whether a value may name a lock.
func isName(v edn.Value) bool {
	_, word := v.Untagged().Word()
	_, number := v.Untagged().Integer()
	return (word || number) && plainText(v) != ""
}

// scalar notes the value of an invocation.
func (k *valueKeys) scalar(value string, e *history.Event) {
	use := valueUse{e.Process, value}
	switch {
	case len(k.acquired) >= maxValueKeys:
		k.contradicted = true
	case e.F == history.Acquire || e.F == history.Try:
		k.acquired[use] = true
	case k.acquired[use]:
		k.released++
	default:
		k.strange++
	}
	k.uses(value, e.Process)
}

// uses notes that a process has a name in a value.
func (k *valueKeys) uses(name string, p history.Process) {
	by, known := k.user[name]
	if k.shared = k.shared || known && by != p; !known && len(k.user) < maxValueKeys {
		k.user[name] = p
	}
}

// result separates names of locks from other values. Names may belong to owners, unless several processes share one,
// or the rest of the tuple is empty; a scalar may also be the number of a request, unless it is released as it was
// acquired.
func (k *valueKeys) result() ValueKeys {
	switch {
	case k.contradicted || k.operations == 0:
	case k.tuples == k.operations:
		return ValueKeys{Path: tupleKey, Certain: k.shared || k.bare == k.tuples}
	case k.scalars > 0 && k.scalars+k.empty == k.operations && (k.released > 0 || k.strange == 0):
		return ValueKeys{Path: scalarKey, Certain: k.shared && k.released > 0 && k.strange == 0}
	}
	return ValueKeys{}
}
