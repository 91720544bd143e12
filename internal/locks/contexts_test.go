package locks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWithoutDeadline: a hold that is acquired for a request survives the request's deadline and its end, but the
// request can be canceled.
func TestWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		free, _ := withoutDeadline(ctx)
		<-ctx.Done()
		synctest.Wait()
		if free.Err() != nil {
			t.Errorf("after the deadline: %v", free.Err())
		}
		for _, stopped := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			free, stop := withoutDeadline(ctx)
			if stopped {
				stop()
			}
			cancel()
			synctest.Wait()
			if ended := free.Err() != nil; ended == stopped {
				t.Errorf("canceled, stopped before: %v: %v", stopped, free.Err())
			}
		}
	})
}

// TestUnder: the values of a hold's context are found, its end and deadline are not.
func TestUnder(t *testing.T) {
	type key string
	hold, cancel := context.WithCancel(context.WithValue(t.Context(), key("a"), 1))
	cancel()
	u := under{context.WithValue(t.Context(), key("b"), 2), hold}
	if u.Value(key("a")) != 1 || u.Value(key("b")) != 2 || u.Value(key("c")) != nil || u.Err() != nil {
		t.Errorf("%v %v %v %v", u.Value(key("a")), u.Value(key("b")), u.Value(key("c")), u.Err())
	}
}
