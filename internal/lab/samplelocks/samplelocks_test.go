package samplelocks

import (
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/simtest"
)

var (
	all   = flag.Bool("samplelocks.all", false, "run every bug in all settings of its lock, and print the score")
	only  = flag.String("samplelocks.only", "", "with -samplelocks.all: lock/bug that match")
	where = flag.String("samplelocks.in", "", "with -samplelocks.all: settings that match")
	seeds = flag.Int("samplelocks.seeds", 4, "with -samplelocks.all: runs of each setting")

	correct = flag.Int("samplelocks.correct", 1, "runs of each setting of a correct lock")
	first   = flag.Uint64("samplelocks.first", 0, "seed of the first of them")
)

// setting is a scenario with changes.
type setting struct {
	scenario string
	set      []string
}

func (s setting) String() string { return strings.Join(append([]string{s.scenario}, s.set...), " ") }

// in are scenarios without changes.
func in(scenarios ...string) (list []setting) {
	for _, s := range scenarios {
		list = append(list, setting{scenario: s})
	}
	return list
}

// settings are where each lock is tested: the scenarios that convicted most bugs of such locks.
var settings = map[string][]setting{
	"plain": in("mixed", "late-requests", "swarm-mixed", "slow-grants", "partitioned-holder", "waiters", "mixed-replies",
		"setnx-crash", "mixed-slow-holders"),
	"reentrant": append(in("mixed", "late-requests", "swarm-mixed", "waiters", "stuck-holder", "watchdog-dead-client",
		"short-faults"), setting{"mixed-network", []string{"workload.lease=0s"}},
		setting{"key-deleted", []string{"workload.lease=0s", "workload.hold=3s"}}),
	"redlock": in("mixed-redlock", "mixed-redlock-network", "swarm-mixed-redlock", "waiters-redlock",
		"redlock-reply-lost", "redlock-slow-majority", "redlock-two-masters-down", "mixed-fast-clock"),
	"fair":      in("mixed-fair", "waiters-fair", "waiters-fair-deaths", "fair-dead-waiter", "swarm-mixed"),
	"fair-slow": in("mixed-fair", "waiters-fair", "waiters-fair-deaths", "fair-dead-waiter", "swarm-mixed"),
	"semaphore": in("mixed-permits", "waiters-permits", "permits-dead-client", "swarm-mixed", "late-requests"),
	"readers-writer": in("mixed-readers-writer", "waiters-readers-writer", "swarm-mixed", "late-requests",
		"mixed-slow-holders"),
	"fenced": in("mixed", "swarm-mixed", "mixed-slow-holders"),
	"wakes":  in("mixed", "waiters", "waiters-subscriptions-refused"),
}

// generated are generated scenarios, as many as there are seeds.
var generated = flag.Bool("samplelocks.generated", false, "with -samplelocks.all or .correct: in generated scenarios")

// settingsOf are the settings of a lock, or one that generates a scenario for each seed.
func settingsOf(l Lock) []setting {
	if *generated {
		return []setting{{}}
	}
	return settings[l.Name]
}

// topologies are the servers of the generated scenarios of a lock; nil: the servers of [simtest.Config].
func topologies(l simtest.Lock) []string {
	if l.Name == "redlock" {
		return []string{"quorum"}
	}
	return nil
}

// convicted makes up to n runs in s, until one convicts l, and returns its violation; "": none does. Seeds count from
// first.
func convicted(t *testing.T, s setting, l simtest.Lock, first uint64, n int) string {
	t.Helper()
	for seed := range uint64(n) {
		r := simtest.Run(t, simtest.Config{
			Scenario: s.scenario, Topologies: topologies(l), Set: s.set, First: first + seed, Seeds: 1,
		}, l)
		o := r.Runs[0]
		if len(o.Unexpected) > 0 {
			return o.Sentence
		}
	}
	return ""
}

// inShort is in how many settings a correct lock runs with -short.
const inShort = 4

// TestCorrectLocks: no run of a lock without a bug is unsafe.
func TestCorrectLocks(t *testing.T) {
	race.Skip(t)
	for _, l := range All() {
		list := settingsOf(l)
		if testing.Short() {
			list = list[:min(inShort, len(list))]
		}
		for _, s := range list {
			t.Run(l.Name+"/"+s.String(), func(t *testing.T) {
				t.Parallel()
				for seed := *first; seed < *first+uint64(*correct); seed++ {
					if why := convicted(t, s, l.With(""), seed, 1); why != "" {
						t.Errorf("seed %d: %s", seed, why)
					}
				}
			})
		}
	}
}

// TestTriesBehindWaiters: a fair lock refuses a try while its first waiter has not polled again, even if that waiter
// then gives up. This happens with these seeds.
func TestTriesBehindWaiters(t *testing.T) {
	race.Skip(t)
	for _, seed := range []uint64{13, 21, 22} {
		if why := convicted(t, setting{scenario: "swarm-mixed"}, slowFairLock().With(""), seed, 1); why != "" {
			t.Errorf("seed %d: %s", seed, why)
		}
	}
}

// sees is a bug and the setting in which its lock is convicted.
type sees struct {
	lock Lock
	bug  string
	in   string
	seed uint64
}

// TestBugs: some bugs of each lock are convicted where TestScore has found that they are.
func TestBugs(t *testing.T) {
	race.Skip(t)
	for _, c := range []sees{
		{plainLock(), "renews-any", "mixed", 0},
		{plainLock(), "compares-first", "late-requests", 0},
		{plainLock(), "expires-later", "late-requests", 0},
		{reentrantLock(), "inner-frees", "mixed", 0},
		{reentrantLock(), "watchdog-late", "mixed", 0},
		{redLock(), "minority", "mixed-redlock", 0},
		{fairLock(), "stack", "mixed-fair", 0},
		{fairLock(), "barging", "mixed-fair", 0},
		{semaphoreLock(), "two-requests", "mixed-permits", 0},
		{semaphoreLock(), "one-too-many", "mixed-permits", 0},
		{rwLock(), "readers-unseen", "mixed-readers-writer", 0},
		{rwLock(), "set-cut", "mixed-readers-writer", 0},
		{plainLock(), "late-start", "mixed-slow-holders", 0},
		{reentrantLock(), "watchdog-stays", "mixed", 0},
		{reentrantLock(), "failed-acquire-renewed", "mixed-network", 0},
		{semaphoreLock(), "revives", "mixed-permits", 0},
		{fencedLock(), "own-counter", "mixed", 0},
		{wakesLock(), "other-channel", "mixed", 0},
	} {
		t.Run(c.lock.Name+"/"+c.bug, func(t *testing.T) {
			t.Parallel()
			if convicted(t, setting{scenario: c.in}, c.lock.With(c.bug), c.seed, 6) == "" {
				t.Errorf("it is not convicted in %s", c.in)
			}
		})
	}
}

// TestScore measures how many bugs are convicted.
func TestScore(t *testing.T) {
	if !*all {
		t.Skip("takes minutes: use -samplelocks.all")
	}
	named := regexp.MustCompile(*only)
	planted, found := 0, 0
	for _, l := range All() {
		for _, bug := range slices.Sorted(maps.Keys(l.Bugs)) {
			if !named.MatchString(l.Name + "/" + bug) {
				continue
			}
			planted++
			by := explore(t, l, bug)
			if by != "" {
				found++
			}
			t.Logf("%-32s %s", l.Name+"/"+bug, by)
		}
	}
	t.Logf("%d of %d bugs are convicted", found, planted)
}

// explore runs the settings of l until one convicts it.
func explore(t *testing.T, l Lock, bug string) string {
	t.Helper()
	for _, s := range settingsOf(l) {
		if strings.Contains(s.String(), *where) {
			if why := convicted(t, s, l.With(bug), 0, *seeds); why != "" {
				return s.String() + ": " + why
			}
		}
	}
	return ""
}
