package samplelocks

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
)

func wakesLock() Lock {
	return Lock{
		Name: "wakes",
		Can:  promise.Try | promise.Renew | promise.Wakes,
		Bugs: map[string]string{
			"silent":         "release publishes nothing",
			"publishes-soon": "release publishes before it deletes the key",
			"other-channel":  "release publishes to the channel of its own hold",
			"trusts":         "a waiter sleeps until it gets a message",
			"oversleeps":     "a waiter sleeps for a whole lease if it gets no message",
			"deaf":           "a waiter whose subscription was refused sleeps until its wait ends",
		},
		open: func(b base) client.Locker { return &wakes{plain{b}} },
	}
}

// wakes is the plain lock whose waiters sleep until a message on a channel says that it is free, or its lease ends.
type wakes struct{ plain }

// releaseAndWake takes the lock and the channel as keys.
const releaseAndWake = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
	redis.call('DEL', KEYS[1])
	if ARGV[2] == '1' then redis.call('PUBLISH', KEYS[2], 'free') end
	return 1`

func channel(key string) string { return "{" + key + "}:free" }

func (l *wakes) Acquire(ctx context.Context, a client.Acquire) (client.Grant, error) {
	start, err := l.take(ctx, a)
	if errors.Is(err, errBusy) && a.Wait > 0 {
		start, err = l.wait(ctx, a)
	}
	if errors.Is(err, errUnknown) {
		l.undo(a)
	}
	return valid(start.Add(a.Lease), err)
}

func (l *wakes) take(ctx context.Context, a client.Acquire) (start time.Time, err error) {
	start = time.Now()
	acquired, err := l.rdb().SetNX(ctx, a.Key, a.Owner, a.Lease).Result()
	switch {
	case err != nil:
		return start, errors.Join(errUnknown, err)
	case !acquired:
		return start, errBusy
	}
	return start, nil
}

// wait subscribes first, so that it misses no release after its next request.
func (l *wakes) wait(ctx context.Context, a client.Acquire) (start time.Time, err error) {
	subscribed, unsubscribe := context.WithCancel(ctx)
	messages := l.rdb().Subscribe(subscribed, channel(a.Key))
	defer func() { _ = messages.Close() }()
	defer unsubscribe()      // first: Close waits for a dial, and virtual time does not pass meanwhile
	var free <-chan struct{} // nil: refused
	if _, err := messages.Receive(subscribed); err == nil {
		free = receive(subscribed, messages)
	}
	for {
		start, err := l.take(ctx, a)
		if !errors.Is(err, errBusy) {
			return start, err
		}
		left, err := l.rdb().PTTL(ctx, a.Key).Result()
		if err != nil {
			return start, errBusy // that request changes nothing
		}
		select {
		case <-free:
		case <-time.After(l.patience(a, left, free != nil)):
		case <-ctx.Done():
			return start, errBusy
		}
	}
}

// receive forwards messages until ctx ends. After a failure go-redis subscribes again.
func receive(ctx context.Context, messages *redis.PubSub) <-chan struct{} {
	free := make(chan struct{}, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := messages.ReceiveMessage(ctx); err != nil {
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			select {
			case free <- struct{}{}:
			default:
			}
		}
	}()
	return free
}

// patience is how long a waiter sleeps without a message, if the lock has a lease of left.
func (l *wakes) patience(a client.Acquire, left time.Duration, subscribed bool) time.Duration {
	switch {
	case l.bug == "trusts", l.bug == "deaf" && !subscribed:
		return time.Hour
	case l.bug == "oversleeps":
		return a.Lease
	case !subscribed:
		return 100 * time.Millisecond
	}
	return max(left, 0) + 5*time.Millisecond
}

func (l *wakes) Release(ctx context.Context, h client.Hold) (int, error) {
	publishes, to := 1, channel(h.Key)
	switch l.bug {
	case "silent":
		publishes = 0
	case "publishes-soon":
		publishes = 0
		_ = l.rdb().Publish(ctx, to, "free").Err()
	case "other-channel":
		to = channel(h.Owner)
	}
	return 0, l.change(ctx, releaseAndWake, []string{h.Key, to}, h.Owner, publishes)
}
