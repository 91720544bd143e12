package historic

// WATCH and MULTI: the value is the owner and the end of the lease. A client watches the key while it changes it, so
// no concurrent change is lost, and a release deletes only its own lock.
//
// The flaw, which it shares with the locks before it: the clocks of clients decide when a lease has expired, so a
// client whose clock is ahead acquires a lock that is held.

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var watchMultiRow = Row{
	Name:   "watch-multi",
	Flaw:   "WATCH and MULTI around owner and timestamp: a client whose clock is ahead acquires a lock that is held.",
	Source: "Redis documentation, Transactions: check and set",
	open:   func(c Config) Lock { return &watchMulti{plain: plain{c.Masters[0]}, now: c.Now} },
}

// As many articles print it: only the acquire watches the key.
var watchMultiUnwatchedRow = Row{
	Name: "watch-multi-unwatched",
	Flaw: "WATCH and MULTI for the acquire; the release reads its value and then deletes the key without WATCH: " +
		"in between, another owner may have acquired the lock.",
	Source: "articles on WATCH locks; Redis documentation, Transactions: check and set",
	open: func(c Config) Lock {
		return &watchMulti{plain: plain{c.Masters[0]}, now: c.Now, unwatched: true}
	},
}

type watchMulti struct {
	plain
	now       func() time.Time
	unwatched bool // the release does not watch the key
}

// TryAcquire writes the key if it is absent or expired.
func (w *watchMulti) TryAcquire(ctx context.Context, name, owner string, lease time.Duration) error {
	value := owner + " " + strconv.FormatInt(w.now().Add(orDefault(lease)).UnixMilli(), 10)
	return w.change(ctx, name, ErrHeld, func(holder string, until int64) bool {
		return holder == "" || until < w.now().UnixMilli()
	}, func(p redis.Pipeliner) { p.Set(ctx, name, value, 0) })
}

// Release deletes the key if it is owner's.
func (w *watchMulti) Release(ctx context.Context, name, owner string) error {
	if w.unwatched {
		holder, _, err := w.read(ctx, w.rdb, name)
		if err != nil {
			return err
		}
		if holder != owner {
			return ErrNotOwner
		}
		return w.plain.Release(ctx, name, owner)
	}
	return w.change(ctx, name, ErrNotOwner, func(holder string, _ int64) bool {
		return holder == owner
	}, func(p redis.Pipeliner) { p.Del(ctx, name) })
}

// read returns who holds the lock, "" if nobody does, and until when.
func (*watchMulti) read(ctx context.Context, rdb redis.Cmdable, name string) (holder string, until int64, err error) {
	value, err := rdb.Get(ctx, name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", 0, err
	}
	holder, end, _ := strings.Cut(value, " ")
	until, _ = strconv.ParseInt(end, 10, 64)
	return holder, until, nil
}

// change executes commands in a transaction. It returns refusal if may forbids it or another client changed the key.
func (w *watchMulti) change(
	ctx context.Context, name string, refusal error, may func(holder string, until int64) bool,
	commands func(redis.Pipeliner),
) error {
	err := w.rdb.Watch(ctx, func(tx *redis.Tx) error {
		holder, until, err := w.read(ctx, tx, name)
		if err != nil {
			return err
		}
		if !may(holder, until) {
			return refusal
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			commands(p)
			return nil
		})
		return err
	}, name)
	if errors.Is(err, redis.TxFailedErr) {
		return refusal
	}
	return err
}
