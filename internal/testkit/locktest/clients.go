package locktest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clients is the behavior of a lock with go-redis clients from users.
func clients() []behavior {
	return []behavior{
		{"ring-is-refused", func(s Spec) bool { return s.On != nil && s.Topology == Single }, ringRefused},
		{"one-server-is-no-quorum", func(s Spec) bool { return s.On != nil && s.Topology == Quorum }, oneServerRefused},
		{"hooks-see-words", func(s Spec) bool { return s.On != nil && s.Topology == Single }, hooksSeeWords},
		{"pool-is-used-up", func(s Spec) bool { return s.On != nil && s.Renews && s.Topology == Single }, poolUsedUp},
		{"unreachable-is-reported",
			func(s Spec) bool { return s.OnObserved != nil && s.Topology == Single }, unreachableIsReported},
		{"guarded-script-runs-once", func(s Spec) bool { return s.Guard != nil && s.Topology == Single }, guardRunsOnce},
	}
}

// ringRefused: a Ring forgets the locks of a shard that fails.
func ringRefused(t *testing.T, s *fixture) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.servers.masters[0].Addr}})
	defer ring.Close()
	if l, err := s.spec.On(ring); err == nil {
		closeLocker(t, l)
		t.Error("a Ring was accepted")
	}
}

// oneServerRefused: three databases of one server have one vote, not three.
func oneServerRefused(t *testing.T, s *fixture) {
	var rdbs []redis.UniversalClient
	for db := range 3 {
		rdb := redis.NewClient(&redis.Options{Addr: s.servers.masters[0].Addr, DB: db})
		defer rdb.Close()
		rdbs = append(rdbs, rdb)
	}
	l, err := s.spec.On(rdbs...)
	if err != nil {
		return
	}
	defer closeLocker(t, l)
	if h, err := l.TryAcquire(context.Background(), s.name, s.longLease()); err == nil {
		s.release(t, h)
		t.Error("three databases of one server were accepted as three masters")
	}
}

// wordHook collects the commands that a client sends, and the words in them that no hook could read or change.
type wordHook struct {
	mu         sync.Mutex
	commands   []string
	unreadable []string
}

// DialHook implements redis.Hook.
func (w *wordHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (w *wordHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.note(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (w *wordHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.note(cmds...)
		return next(ctx, cmds)
	}
}

func (w *wordHook) note(cmds ...redis.Cmder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cmd := range cmds {
		w.commands = append(w.commands, fmt.Sprint(cmd.Args()...))
		for _, word := range cmd.Args() {
			switch word.(type) {
			case string, []byte, bool, int, int64, uint64, float64:
			default:
				w.unreadable = append(w.unreadable, fmt.Sprintf("%T in %s", word, cmd.FullName()))
			}
		}
	}
}

// sent is how many commands with this word were sent, and the unreadable parts of any.
func (w *wordHook) sent(word string) (n int, unreadable []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, command := range w.commands {
		if strings.Contains(command, word) {
			n++
		}
	}
	return n, slices.Clone(w.unreadable)
}

// hooksSeeWords: the hooks of the user's client, for traces, slow logs and prefixes, get commands of plain words.
func hooksSeeWords(t *testing.T, s *fixture) {
	rdb := Dial(t, s.servers.addrs[0])
	hook := &wordHook{}
	rdb.AddHook(hook)
	l, err := s.spec.On(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLocker(t, l)
	h := s.acquire(t, l, AcquireOptions{})
	acquired, _ := hook.sent(s.name)
	if acquired == 0 {
		t.Error("no command of the acquire has the name of the lock")
	}
	s.mustBeHeld(t, l)
	refused, _ := hook.sent(s.name)
	if s.spec.Renews {
		Eventually(t, timeout, "a renewal was sent", func() bool {
			n, _ := hook.sent(s.name)
			return n > refused
		})
	}
	s.handOver(t, h, l)
	if _, unreadable := hook.sent(""); len(unreadable) > 0 {
		t.Errorf("%d words that a hook cannot read: %s", len(unreadable), unreadable[0])
	}
}

// poolUsedUp: blocking commands of the user's program take all connections of the pool that it shares with the lock. A
// lone acquire and a lone release wait for none of them, and a hold is renewed even so, whether contexts bound the
// client's requests or not.
func poolUsedUp(t *testing.T, s *fixture) {
	t.Run("side-by-side", func(t *testing.T) { // returns when both have ended
		for i, bounded := range []bool{false, true} {
			name := fmt.Sprintf("context-timeout=%v", bounded)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				other := *s
				other.name, other.a, other.b = s.name+"-"+strconv.Itoa(i), s.servers.open(t), s.servers.open(t)
				other.poolUsedUp(t, &redis.Options{
					Addr: s.servers.addrs[0], ClientName: name, PoolSize: 4, PoolTimeout: 2 * timeout,
					ContextTimeoutEnabled: bounded,
				})
			})
		}
	})
}

func (s *fixture) poolUsedUp(t *testing.T, o *redis.Options) {
	rdb := redis.NewClient(o)
	ctx, cancel := context.WithCancel(context.Background())
	var programs sync.WaitGroup
	defer programs.Wait()
	defer rdb.Close() // ends the blocking commands
	defer cancel()
	var lockers []Locker // each has sent nothing but quick requests when the pool is used up
	for range 3 {
		l, err := s.spec.On(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer closeLocker(t, l)
		s.mustBeFree(t, l) // loads its scripts
		lockers = append(lockers, l)
	}
	released := s.acquire(t, lockers[0], s.longLease())
	for range o.PoolSize {
		programs.Go(func() { _ = rdb.BLPop(ctx, 0, "locktest-jobs").Err() })
	}
	blocked := regexp.MustCompile(` name=` + o.ClientName + ` .* flags=b `)
	Eventually(t, timeout, "the pool is used up", func() bool {
		clients, err := s.servers.direct[0].ClientList(context.Background()).Result()
		return err == nil && len(blocked.FindAllString(clients, -1)) == o.PoolSize
	})
	s.release(t, released)
	s.release(t, awaitGrant(t, timeout, s.acquireAsync(context.Background(), lockers[1], s.longLease())))
	s.outlastsLease(t, lockers[2], func() {}, func() {})
}

// unreachableIsReported: an acquire without a deadline, at an address without a server, reports that it waits.
func unreachableIsReported(t *testing.T, s *fixture) {
	reported := make(chan struct{}, 100)
	rdb := redis.NewClient(&redis.Options{Addr: FreeAddr(t), DialerRetries: 1})
	defer rdb.Close()
	l, err := s.spec.OnObserved(rdb, func() {
		select {
		case reported <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLocker(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acquired := s.acquireAsync(ctx, l, s.longLease())
	select {
	case <-reported:
	case o := <-acquired:
		t.Fatalf("an acquire gave up without a deadline: %v", o.err)
	case <-time.After(timeout):
		t.Fatalf("an acquire at a wrong address was not reported within %v", timeout)
	}
	cancel()
	if o := await(t, timeout, acquired); o.err == nil {
		t.Error("the lock was granted without a server")
	}
	if n := len(reported); n > 3 {
		t.Errorf("it was reported %d times more", n)
	}
}

// guardRunsOnce: the reply to a script of the guarded resource is lost, and the user's client sends commands again by
// itself, as go-redis does unless it is forbidden. Nobody but the caller may decide to run the script again.
func guardRunsOnce(t *testing.T, s *fixture) {
	ctx := context.Background()
	rdb := redis.NewClient(&redis.Options{Addr: s.servers.addrs[0], MaxRetries: 3})
	defer rdb.Close()
	const script = "return redis.call('INCR', KEYS[1])"
	if err := s.spec.Guard(ctx, rdb, 1, script, s.name); err != nil { // the server knows it from now on
		t.Fatal(err)
	}
	s.dropReplies(t, func() {
		if err := s.spec.Guard(ctx, rdb, 2, script, s.name); err == nil {
			t.Error("a script without a reply was reported as run: it was sent again")
		}
	})
	if n, err := s.servers.direct[0].Get(ctx, s.name).Int(); n != 2 || err != nil {
		t.Errorf("two calls ran the script %d times (%v)", n, err)
	}
}
