package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Assumption is about something that a history of another suite leaves open and that changes its meaning. Strict
// reading makes none.
type Assumption string

// The assumptions; [Assumptions] describes them.
const (
	EmptyIsFail   Assumption = "empty-is-fail"
	NotHeldEnds   Assumption = "not-held-ends"
	ZeroIsNone    Assumption = "zero-is-none"
	NumbersReused Assumption = "numbers-reused"
)

// AssumptionRow describes an [Assumption].
type AssumptionRow struct {
	Name   Assumption
	Doc    string // the assumption, as a sentence
	Strict string // the action of strict reading instead
	Source string // histories that need it
}

// Assumptions returns the catalog of assumptions.
func Assumptions() []AssumptionRow {
	return []AssumptionRow{
		{
			Name: EmptyIsFail,
			Doc: `"ok" with an empty value ("", nil, false, []) is a failure: ` +
				`an acquire that was not granted, a release of nothing`,
			Strict: `"ok" is ok, whatever its value`,
			Source: "AtlasDB's timelock history",
		},
		{
			Name:   NotHeldEnds,
			Doc:    "a release or renewal that failed because the lock was not held proves that the lease had ended before",
			Strict: "a failed operation had no effect, so the lock is still held",
			Source: "jepsen-io/etcd lock.clj; lease locks of every kind",
		},
		{
			Name:   ZeroIsNone,
			Doc:    "fencing token 0 means that there is none",
			Strict: "0 is a fencing token like any other",
			Source: "Hazelcast's fenced lock models",
		},
		{
			Name:   NumbersReused,
			Doc:    "a process number that is reused after an unknown outcome is another client",
			Strict: "it is the same client, which violates Jepsen's rule and is reported",
			Source: "histories that Jepsen's interpreter did not record",
		},
	}
}

// Options determine how to read a history. The zero value detects the format and is strict. Everything but Format,
// Clients and Progress applies only to histories of other suites.
type Options struct {
	Format Format        // empty: FormatAuto
	Unit   time.Duration // of :time; 0: a nanosecond
	// Owner is the path to the owner, such as value.client; empty: value.owner, else the process; "process": the
	// process.
	Owner string
	// Key is the path to the key, in the invocation if it has one there; of several paths, separated by commas, the first
	// that leads to something. Empty: key, value.key, value.lock, else the previous key of the process.
	Key      string
	Token    string // path to the fencing token; empty: value.token, value.fence, value.revision
	Clients  int    // number of clients, see [history.Process.Client]; 0: unknown
	Assume   []Assumption
	Progress *atomic.Int64 // incremented for each event; nil: not
	Size     int64         // of the history in bytes, to allocate memory for it at once; 0: unknown
}

// Strict returns o without assumptions.
func (o Options) Strict() Options {
	o.Assume = nil
	return o
}

// With returns o with one more assumption.
func (o Options) With(a Assumption) Options {
	o.Assume = append(slices.Clone(o.Assume), a)
	return o
}

// Foreign reports whether an option applies only to histories of other suites.
func (o Options) Foreign() bool {
	return o.Unit != 0 || o.Owner != "" || o.Key != "" || o.Token != "" || len(o.Assume) > 0
}

// CheckPath returns an error if p is not the path to a field of an event, such as value.client, or several, separated
// by commas. An empty path is valid: it stands for the default.
func CheckPath(p string) error {
	if p == "" {
		return nil
	}
	for one := range strings.SplitSeq(p, ",") {
		for step := range strings.SplitSeq(one, ".") {
			if step == "" || strings.HasPrefix(step, "-") {
				return errors.New("expected the names on the path to a field, separated by dots, such as value.client or value.0")
			}
		}
	}
	return nil
}

// Dialect is a set of options that fits the histories of one suite.
type Dialect struct {
	Name    string
	Doc     string // a sentence
	Options Options
}

// Dialects returns the catalog of dialects.
func Dialects() []Dialect {
	return []Dialect{
		{"strict", "No assumptions.", Options{}},
		{"hazelcast", "The owner is the client named in the completion, fencing token 0 means none, and a release by " +
			"another client proves that the session was lost.",
			Options{Owner: "value.client", Token: "value.fence", Assume: []Assumption{NotHeldEnds, ZeroIsNone}}},
		{"atlasdb", "The key is the value of the invocation or the second of its query-params, an empty value of a " +
			"completion is a failure, and a failed unlock or refresh proves that the lease had ended.",
			Options{Key: "value,query-params.1", Assume: []Assumption{EmptyIsFail, NotHeldEnds}}},
		{"etcd", "A release that fails with not-held proves that the lease had ended.",
			Options{Assume: []Assumption{NotHeldEnds}}},
	}
}

// LookupDialect returns the dialect of that name.
func LookupDialect(name string) (Dialect, error) {
	for _, d := range Dialects() {
		if d.Name == name {
			return d, nil
		}
	}
	return Dialect{}, fmt.Errorf("unknown dialect %q", name)
}

// canonicalOp returns the operation that other suites call f; f itself if it is none.
func canonicalOp(f string) string {
	switch f {
	case "lock", "take", "obtain", "acquire-lock", "acquire_lock":
		return history.Acquire
	case "trylock", "try-lock", "try_lock", "tryLock", "try-acquire", "try_acquire", "tryAcquire":
		return history.Try
	case "unlock", "release-lock", "release_lock":
		return history.Release
	case "refresh", "extend", "keep-alive", "keepalive", "keepAlive", "prolong":
		return history.Renew
	}
	return f
}

// isOperation reports whether f is an operation that checkers know.
func isOperation(f string) bool {
	for o := history.OpAcquire; o <= history.OpReopen; o++ {
		if o.String() == f {
			return true
		}
	}
	return false
}
