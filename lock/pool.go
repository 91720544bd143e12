package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pool is what both kinds of semaphore have in common: a total, and who has how much of it.
type pool struct {
	client *Client
	name   string
	kind   string // "semaphore" or "permits", as in the hash
}

// SemaphoreState is how a semaphore stands at its server.
type SemaphoreState struct {
	Total int // permits there are
	Free  int // permits that nobody holds; negative: the total was lowered below what is out
	Holds []HeldPermits
}

// HeldPermits are permits that are out.
type HeldPermits struct {
	ID      string
	Permits int
	Left    time.Duration // of the lease; negative: there is none
}

func (p pool) permitsKey() string { return tagged(p.name, "permits") }

// set runs the script that sets the total, under one id for all its tries.
func (p pool) set(ctx context.Context, how string, n int) (code, total int, err error) {
	if err := p.client.checkCounted(p.name); err != nil {
		return 0, 0, err
	}
	request := call{
		script: counted.set,
		keys: []string{p.name, p.permitsKey(),
			tagged(p.name, "tombstone:"+p.client.random.id()), tagged(p.name, "free")},
		args: []any{p.kind, how, n, p.client.o.tombstoneTTL()},
	}
	err = p.client.retry(ctx, func(ctx context.Context) error {
		got, err := p.client.keeps(ctx, 2, request)
		if err == nil {
			code, total = int(got[0]), int(got[1])
		}
		return err
	})
	return code, total, err
}

func (p pool) try(ctx context.Context, n int) (bool, error) {
	err := checkCount(n, 0)
	code := 0
	if err == nil {
		code, _, err = p.set(ctx, "try", n)
	}
	return code == 1, failed("set up", p.kind, p.name, err)
}

func (p pool) put(ctx context.Context, n int) error {
	err := checkCount(n, 0)
	if err == nil {
		_, _, err = p.set(ctx, "set", n)
	}
	return failed("set", p.kind, p.name, err)
}

func (p pool) add(ctx context.Context, n int) (int, error) {
	err := checkCount(max(n, -n), 1)
	code, total := 0, 0
	if err == nil {
		code, total, err = p.set(ctx, "add", n)
	}
	switch code {
	case -2:
		err = ErrAbsent
	case -3:
		err = fmt.Errorf("%w: %d of them are to be taken away from %d", ErrPermits, -n, total)
	}
	return total, failed("add permits to", p.kind, p.name, err)
}

func (p pool) state(ctx context.Context) (SemaphoreState, error) {
	s, err := p.look(ctx)
	return s, failed("look at", p.kind, p.name, err)
}

func (p pool) look(ctx context.Context) (SemaphoreState, error) {
	if err := p.client.checkCounted(p.name); err != nil {
		return SemaphoreState{}, err
	}
	var list []any
	err := p.client.retry(ctx, func(ctx context.Context) error {
		value, err := p.client.node.do(ctx, call{
			script: counted.state,
			keys:   []string{p.name, p.permitsKey(), tagged(p.name, "free")},
			args:   []any{p.kind},
		})
		list, _ = value.([]any)
		return crossSlot(err)
	})
	switch {
	case err != nil:
		return SemaphoreState{}, err
	case len(list) < 3 || len(list)%3 != 0:
		return SemaphoreState{}, fmt.Errorf("the server answered %v, want threes", list)
	case integer(list[0]) == 0:
		return SemaphoreState{}, ErrAbsent
	}
	s := SemaphoreState{Total: integer(list[1]), Free: integer(list[2])}
	for i := 3; i < len(list); i += 3 {
		id, _ := list[i].(string)
		left := time.Duration(integer(list[i+2])) * time.Millisecond
		s.Holds = append(s.Holds, HeldPermits{ID: id, Permits: integer(list[i+1]), Left: left})
	}
	return s, nil
}

// force gives ids back under a request of its own.
func (p pool) force(ctx context.Context, give func(ctx context.Context, request string) (int, error)) (int, error) {
	n := 0
	err := p.client.checkCounted(p.name)
	if err == nil {
		request := p.client.random.id()
		err = p.client.retry(ctx, func(ctx context.Context) (err error) {
			n, err = give(ctx, request)
			return err
		})
	}
	return n, failed("release permits of", p.kind, p.name, err)
}

func integer(value any) int {
	n, _ := value.(int64)
	return int(n)
}

type asker = func(ctx context.Context) (turn, error)

// patience is how to ask for permits: for as long as ctx lasts, or now.
type patience = func(ctx context.Context, channel string, ask asker) error

// taking is one call of Acquire or TryAcquire.
type taking struct {
	pool    pool
	permits int
	ids     []string
	lease   time.Duration // 0: there is none
	auto    bool
	ask     func(ctx context.Context) ([]int64, error) // {code, free, ms}
	back    func(ctx context.Context) (held bool, err error)
	renew   func(ctx context.Context, lease time.Duration) (bool, error)

	sent      time.Time // when the question was sent whose answer was yes
	uncertain bool      // a request of unknown outcome was sent
}

func (t *taking) run(ctx context.Context, how patience) (*Permits, error) {
	begun := t.pool.client.startTime()
	err := how(ctx, tagged(t.pool.name, "free"), t.turn)
	if err != nil {
		if t.uncertain {
			err = t.pool.client.undo(ctx, err, func(ctx context.Context) error {
				_, err := t.back(ctx)
				return err
			})
		}
		t.emit(NotAcquired, begun, err)
		return nil, err
	}
	p := &Permits{pool: t.pool, permits: t.permits, ids: t.ids, back: t.back}
	p.lease = &leaseKeeper{client: t.pool.client, auto: t.auto, lease: t.lease, renew: t.renew, notice: p.onRenewal}
	t.emit(Acquired, begun, nil)
	p.lease.begin(ctx, t.sent)
	return p, nil
}

// turn asks once.
func (t *taking) turn(ctx context.Context) (turn, error) {
	t.sent = time.Now()
	got, err := t.ask(ctx)
	if err != nil {
		t.uncertain = t.uncertain || outcomeOf(err) == unknown || outcomeOf(err) == underReplicated
		return turn{}, err
	}
	switch got[0] {
	case -3:
		return turn{}, &requestError{rejected, fmt.Errorf("%w: %d of %d permits", ErrPermits, t.permits, got[1])}
	case -2:
		return turn{}, &requestError{rejected, ErrAbsent}
	case -1:
		return turn{}, &requestError{rejected, ErrReleased}
	case 0:
		left := time.Duration(got[2]) * time.Millisecond
		return turn{left: left, spare: got[1] > 0, why: ErrNoPermits}, nil
	}
	if t.lease > 0 && time.Until(t.sent.Add(validity(t.lease))) <= 0 {
		t.uncertain = true // it is to be given back
		return turn{}, &requestError{rejected, errors.New("the answer came after the lease was over; ask for a longer one")}
	}
	return turn{done: true}, nil
}
