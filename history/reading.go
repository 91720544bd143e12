package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Assumption is something that a history of another suite does not say, and
// that changes what it means. The strict reading assumes nothing.
type Assumption string

// The assumptions; see [Assumptions] for what each means.
const (
	EmptyIsFail   Assumption = "empty-is-fail"
	NotHeldEnds   Assumption = "not-held-ends"
	ZeroIsNone    Assumption = "zero-is-none"
	NumbersReused Assumption = "numbers-reused"
)

// AssumptionRow is a row of the catalogue.
type AssumptionRow struct {
	Name   Assumption
	Doc    string // what is read differently, as a sentence
	Strict string // what is read without it
	Source string // who needs it
}

// Assumptions is every assumption that a reading can make.
func Assumptions() []AssumptionRow {
	return []AssumptionRow{
		{
			Name: EmptyIsFail,
			Doc: `"ok" with an empty value ("", nil, false, []) did not happen: ` +
				`an acquire was not granted, a release of nothing`,
			Strict: `"ok" is ok, whatever the value`,
			Source: "AtlasDB's timelock history",
		},
		{
			Name:   NotHeldEnds,
			Doc:    "a release or renewal that failed because the lock was not held proves that the lease had ended before",
			Strict: "what failed had no effect, so the lock is held as before",
			Source: "jepsen-io/etcd lock.clj; lease locks of every kind",
		},
		{
			Name:   ZeroIsNone,
			Doc:    "fence 0 means that no fence is known",
			Strict: "0 is a fencing number like any other",
			Source: "Hazelcast's fenced lock models",
		},
		{
			Name:   NumbersReused,
			Doc:    "a process number that is used again after an unknown outcome is another client",
			Strict: "it is the same client, which breaks Jepsen's rule and is reported",
			Source: "histories that were not made by Jepsen's interpreter",
		},
	}
}

// Reading is how a history is to be understood. The zero value finds the format
// out by itself and is strict. Everything but Format and Clients concerns
// histories of other suites only: ours say what they mean.
type ReadOptions struct {
	Format Format        // empty: FormatAuto
	Unit   time.Duration // of :time; 0 is a nanosecond
	// Owner is the path to the owner, such as value.client; empty: value.owner, else the process; "process": the process.
	Owner    string
	Key      string // path to what is locked; empty: key, value.key, value.lock, else what the process named before
	Token    string // path to the fencing number; empty: value.token, value.fence, value.revision
	Clients  int    // number of clients, so that process 8 of 5 is known to be client 3; 0: not known
	Assume   []Assumption
	Progress *atomic.Int64 // counts the events as they are read, for whoever shows progress; nil: nobody does
}

// Strict is the same reading without any assumption.
func (r ReadOptions) Strict() ReadOptions {
	r.Assume = nil
	return r
}

// With is the same reading with one more assumption.
func (r ReadOptions) With(a Assumption) ReadOptions {
	r.Assume = append(slices.Clone(r.Assume), a)
	return r
}

// Foreign says that the reading asks for something that only histories of other suites need.
func (r ReadOptions) Foreign() bool {
	return r.Unit != 0 || r.Owner != "" || r.Key != "" || r.Token != "" || len(r.Assume) > 0
}

// CheckPath says what is wrong with a path to a field, such as value.client; an
// empty one stands for the usual paths, and is right.
func CheckPath(p string) error {
	if p == "" {
		return nil
	}
	for step := range strings.SplitSeq(p, ".") {
		if step == "" || strings.HasPrefix(step, "-") {
			return errors.New("it takes the names on the way to a field with dots between, such as value.client or value.0")
		}
	}
	return nil
}

// Dialect is a reading that is known to fit the histories of one suite.
type Dialect struct {
	Name    string
	Doc     string // a sentence
	Options ReadOptions
}

// Dialects is every dialect.
func Dialects() []Dialect {
	return []Dialect{
		{"strict", "Nothing is assumed.", ReadOptions{}},
		{"hazelcast", "The owner is the client that the answer names, fence 0 is none, a release by another is evidence " +
			"of a lost session.",
			ReadOptions{Owner: "value.client", Token: "value.fence", Assume: []Assumption{NotHeldEnds, ZeroIsNone}}},
		{"atlasdb", "An empty answer is a refusal, and a refused unlock or refresh means that the lease had ended.",
			ReadOptions{Assume: []Assumption{EmptyIsFail, NotHeldEnds}}},
		{"etcd", "A release that fails with not-held means that the lease had ended.",
			ReadOptions{Assume: []Assumption{NotHeldEnds}}},
	}
}

// FindDialect is the dialect of that name.
func LookupDialect(name string) (Dialect, error) {
	for _, d := range Dialects() {
		if d.Name == name {
			return d, nil
		}
	}
	return Dialect{}, fmt.Errorf("no dialect is called %q", name)
}

// OpName is our word for an operation that other suites call by another name;
// f itself if it is none of them.
func canonicalOp(f string) string {
	switch f {
	case "lock", "take", "obtain", "acquire-lock", "acquire_lock":
		return Acquire
	case "trylock", "try-lock", "try_lock", "tryLock", "try-acquire", "try_acquire", "tryAcquire":
		return Try
	case "unlock", "release-lock", "release_lock":
		return Release
	case "refresh", "extend", "keep-alive", "keepalive", "keepAlive", "prolong":
		return Renew
	}
	return f
}
