package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// stubLocker is a [Locker] whose calls all have the same result.
type stubLocker struct {
	grant  Grant
	err    error
	panics bool
	asks   []Acquire
	closed int
}

func (s *stubLocker) Acquire(_ context.Context, a Acquire) (Grant, error) {
	s.asks = append(s.asks, a)
	if s.panics {
		panic("out of locks")
	}
	return s.grant, s.err
}

func (s *stubLocker) Renew(context.Context, Hold, time.Duration) (Grant, error) {
	return s.grant, s.err
}

func (s *stubLocker) Release(context.Context, Hold) (int, error) {
	return s.grant.Count, s.err
}

func (s *stubLocker) Close(context.Context) error {
	s.closed++
	return s.err
}

// opened is an initialized native client whose lock is l.
func opened(t *testing.T, l Locker) *native {
	t.Helper()
	n := newNative(func(Reply) {}, func() int64 { return 77 }, singleLock(l))
	if reply := n.handle(t.Context(), Request{ID: 1, Op: Init, Setup: &Setup{Lock: "memory"}}); reply.Type != "ok" {
		t.Fatalf("init: %+v", reply)
	}
	return n
}

// TestErrorsBecomeFailOrInfo: an error whose effect is unknown is info.
func TestErrorsBecomeFailOrInfo(t *testing.T) {
	broken := errors.New("connection broken")
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, "ok"}, {errBusy, "fail"}, {ErrNotHeld, "fail"}, {fmt.Errorf("renewing: %w", ErrNotHeld), "fail"},
		{broken, "info"}, {context.DeadlineExceeded, "info"}, {context.Canceled, "info"}, {io.EOF, "info"},
	} {
		n := opened(t, &stubLocker{err: test.err})
		for _, op := range []string{"acquire", "try", "renew", "release"} {
			reply := n.handle(t.Context(), Request{ID: 9, Op: op, Acquire: Acquire{Wait: 10 * time.Millisecond}})
			if reply.Type != test.want || reply.ID != 9 {
				t.Errorf("%s with %v: %+v, want %s", op, test.err, reply, test.want)
			}
			if test.err != nil && (reply.Error != test.err.Error() || reply.Code == "" || reply.ValidMS != 0) {
				t.Errorf("%s with %v: %+v", op, test.err, reply)
			}
		}
	}
}

func TestHandleRejects(t *testing.T) {
	setup := &Setup{Lock: "memory"}
	for _, test := range []struct {
		name     string
		requests []Request
		code     string // of the last reply
	}{
		{"before init", []Request{{Op: "acquire"}}, "not-ready"},
		{"unknown before init", []Request{{Op: "unknown"}}, "not-ready"},
		{"unknown", []Request{{Op: Init, Setup: setup}, {Op: "unknown"}}, "unknown-op"},
		{"no op", []Request{{Op: Init, Setup: setup}, {}}, "unknown-op"},
		{"no setup", []Request{{Op: Init}}, "bad-request"},
		{"unknown lock", []Request{{Op: Init, Setup: &Setup{Lock: "nothing"}}}, "unknown-lock"},
		{"init twice", []Request{{Op: Init, Setup: setup}, {Op: Init, Setup: setup}}, "bad-request"},
		{"after close", []Request{{Op: Init, Setup: setup}, {Op: Close}, {Op: "acquire"}}, "not-ready"},
	} {
		n := newNative(func(Reply) {}, MonotonicNow, singleLock(&stubLocker{}))
		var reply Reply
		for i, r := range test.requests {
			r.ID = int64(i + 1)
			reply = n.handle(t.Context(), r)
		}
		if reply.Type != "fail" || reply.Code != test.code || reply.Error == "" || reply.ID != int64(len(test.requests)) {
			t.Errorf("%s: %+v, want fail %s", test.name, reply, test.code)
		}
	}
}

func TestCloseTwiceAndCloseThatFails(t *testing.T) {
	l := &stubLocker{}
	n := opened(t, l)
	for range 2 {
		if reply := n.handle(t.Context(), Request{ID: 3, Op: Close}); reply.Type != "ok" || reply.ID != 3 {
			t.Errorf("%+v", reply)
		}
	}
	if l.closed != 1 {
		t.Errorf("the lock was closed %d times", l.closed)
	}
	n = opened(t, &stubLocker{err: io.ErrClosedPipe})
	if reply := n.handle(t.Context(), Request{ID: 3, Op: Close}); reply.Type != "info" || reply.Code != "close" {
		t.Errorf("%+v", reply)
	}
}

// TestPanicBecomesInfo: the effect of an operation that panicked is unknown, and
// the client continues.
func TestPanicBecomesInfo(t *testing.T) {
	l := &stubLocker{panics: true}
	n := opened(t, l)
	reply := n.handle(t.Context(), Request{ID: 5, Op: "try"})
	want := Reply{ID: 5, Type: "info", Code: "panic", Error: "lock panicked: out of locks"}
	if diff := cmp.Diff(want, reply, cmp.AllowUnexported(Reply{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.panics = false
	if reply := n.handle(t.Context(), Request{Op: "try"}); reply.Type != "ok" {
		t.Errorf("after the panic: %+v", reply)
	}
}

// TestAcquireFromTheWire: the arguments of an acquire, from a line of the protocol.
func TestAcquireFromTheWire(t *testing.T) {
	for line, want := range map[string]Acquire{
		`{"op":"try","key":"k","owner":"o","wait_ms":9}`:    {Key: "k", Owner: "o", Permits: 1, Limit: 1},
		`{"op":"acquire","lease_ms":1.5}`:                   {Lease: 1500 * time.Microsecond, Permits: 1, Limit: 1},
		`{"op":"acquire","wait_ms":1e300,"lease_ms":1e300}`: {Wait: century, Lease: century, Permits: 1, Limit: 1},
		`{"op":"acquire","wait_ms":9,"mode":"read","permits":3,"limit":7}`: {
			Wait: 9 * time.Millisecond, Mode: "read", Permits: 3, Limit: 7,
		},
		`{"op":"acquire","wait_ms":-1e300,"lease_ms":-1e300,"permits":-7}`: {Lease: -century, Permits: 1, Limit: 1},
	} {
		var r Request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		l := &stubLocker{}
		opened(t, l).handle(t.Context(), r)
		if diff := cmp.Diff([]Acquire{want}, l.asks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestRequestOnTheWire: one line has every field of a request, with durations in milliseconds.
func TestRequestOnTheWire(t *testing.T) {
	r := Request{
		ID: 7, Op: "acquire", Client: "3", Work: time.Second, Close: 9 * time.Millisecond, Setup: &Setup{Lock: "l"},
		Acquire: Acquire{
			Key: "k", Owner: "o", Lease: 1500 * time.Microsecond, Wait: time.Minute, Mode: "read", Permits: 2, Limit: 5,
		},
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":7,"op":"acquire","client":"3","key":"k","owner":"o","mode":"read","permits":2,"limit":5,` +
		`"setup":{"lock":"l","endpoints":{"kind":""}},"lease_ms":1.5,"wait_ms":60000,"ms":1000,"close_ms":9}`
	if string(line) != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
	var back Request
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestValidity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deadline := time.Now().Add(1500 * time.Millisecond)
		n := opened(t, &stubLocker{grant: Grant{Token: 4, Count: 2, Deadline: deadline}})
		reply := n.handle(t.Context(), Request{ID: 2, Op: "acquire"})
		want := Reply{ID: 2, Type: "ok", Token: 4, Count: 2, ValidMS: 1500, MonoNS: 77}
		if diff := cmp.Diff(want, reply, cmp.AllowUnexported(Reply{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		var notice Reply
		n = newNative(func(r Reply) { notice = r }, func() int64 { return 78 }, nil)
		n.notify(Reply{Event: "renewed", Deadline: deadline})
		if notice.ValidMS != 1500 || notice.MonoNS != 78 {
			t.Errorf("notice %+v", notice)
		}
	})
}

func TestWorkSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := opened(t, &stubLocker{})
		began := time.Now()
		reply := n.handle(t.Context(), Request{ID: 2, Op: "work", Work: 250 * time.Millisecond})
		if reply.Type != "ok" || reply.ID != 2 {
			t.Errorf("%+v", reply)
		}
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if reply := n.handle(ctx, Request{Op: "work", Work: century}); reply.Type != "info" || reply.Code != "closing" {
			t.Errorf("%+v", reply)
		}
	})
}

func TestValidFor(t *testing.T) {
	const now = int64(100 * time.Second)
	at := func(d time.Duration) int64 { return int64(d) }
	for _, test := range []struct {
		name  string
		reply Reply
		took  time.Duration
		want  time.Duration
	}{
		{"nothing promised", Reply{MonoNS: now}, time.Second, 0},
		{"not stamped: counts from the request", Reply{ValidMS: 2000}, 300 * time.Millisecond, 1700 * time.Millisecond},
		{"stamped", Reply{ValidMS: 2000, MonoNS: at(99 * time.Second)}, 3 * time.Second, time.Second},
		{"ended", Reply{ValidMS: 2000, MonoNS: at(90 * time.Second)}, 11 * time.Second, -8 * time.Second},
		{"ended from the start", Reply{ValidMS: -1, MonoNS: now}, time.Second, -time.Millisecond},
		{"just ended", Reply{ValidMS: 1000, MonoNS: at(99 * time.Second)}, 2 * time.Second, -1},
		{"stamped before the request", Reply{ValidMS: 2000, MonoNS: 5}, time.Second, time.Second},
		{"stamped in the future", Reply{ValidMS: 2000, MonoNS: 2 * now}, time.Second, time.Second},
		{"stamped below zero", Reply{ValidMS: 2000, MonoNS: -1 << 63}, time.Second, time.Second},
		{"notice, stamped", Reply{ValidMS: 2000, MonoNS: at(99 * time.Second)}, 0, time.Second},
		{"notice, not stamped: unknown", Reply{ValidMS: 2000}, 0, 0},
		{"notice stamped by another clock", Reply{ValidMS: 2000, MonoNS: 2 * now}, 0, 0},
		{"endless", Reply{ValidMS: 1e300, MonoNS: now}, time.Second, century},
		{"ended long ago", Reply{ValidMS: -1e300}, time.Second, -century - time.Second},
	} {
		if got := test.reply.ValidFor(test.took, now); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if a, b := MonotonicNow(), MonotonicNow(); a <= 0 || b < a {
		t.Errorf("MonotonicNow = %d, then %d", a, b)
	}
}

func TestTypeOf(t *testing.T) {
	for word, want := range map[string]history.Type{
		"ok": history.OK, "fail": history.Fail, "info": history.Info, "": history.Info, "?": history.Info,
	} {
		if got := TypeOf(Reply{Type: word}); got != want {
			t.Errorf("TypeOf(%q) = %v, want %v", word, got, want)
		}
	}
}

// TestServe tests the client's end alone.
func TestServe(t *testing.T) {
	setup := `{"id":1,"op":"init","setup":{"lock":"memory","endpoints":{"kind":"single"}}}`
	for _, test := range []struct{ name, in, out, err string }{
		{"nothing", "", "", ""},
		{"blank lines", "\n \r\n\n", "", ""},
		{"one client", setup + "\n" + `{"id":2,"op":"try","key":"k","owner":"o"}` + "\n" + `{"id":3,"op":"close"}` + "\n",
			`1 ok, 2 ok, 3 ok`, ""},
		{"no newline at the end", setup, "1 ok", ""},
		{"not JSON", setup + "\nhello\n", "1 ok", `reading a request: expected one JSON object per line`},
		{"half a request", `{"id":1,"op`, "", "reading a request"},
		{"a line of 2 MiB", strings.Repeat("x", 2<<20), "", "token too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeaks(t)
			var out bytes.Buffer
			err := Serve(t.Context(), strings.NewReader(test.in), &out, singleLock(newMemoryLocker()))
			if (err != nil) != (test.err != "") || !strings.Contains(fmt.Sprint(err), test.err) && err != nil {
				t.Errorf("serve = %v, want %q", err, test.err)
			}
			var got []string
			for d := json.NewDecoder(&out); d.More(); {
				var r Reply
				if err := d.Decode(&r); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(r.ID, " ", r.Type))
			}
			if diff := cmp.Diff(test.out, strings.Join(got, ", ")); diff != "" {
				t.Errorf("replies (-want +got):\n%s", diff)
			}
		})
	}
}

// TestServeEndsWithItsContext: also during a request, with the input still open.
func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, requests := io.Pipe()
		replies, out := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Serve(ctx, in, out, singleLock(newMemoryLocker())) }()
		lines := json.NewDecoder(replies)
		_, _ = io.WriteString(requests, `{"id":1,"op":"init","setup":{"lock":"memory"}}`+"\n")
		var r Reply
		if err := lines.Decode(&r); err != nil || r.Type != "ok" {
			t.Fatalf("%+v, %v", r, err)
		}
		_, _ = io.WriteString(requests, `{"id":2,"op":"work","ms":1e9}`+"\n")
		synctest.Wait()
		cancel()
		if err := lines.Decode(&r); err != nil || r.Type != "info" || r.Code != "closing" {
			t.Errorf("work ended with %+v, %v", r, err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve = %v", err)
		}
		_ = requests.Close()
	})
}

// FuzzServe feeds arbitrary requests to the client's end.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}", `{"id":1,"op":"init"}`, `{"id":1,"op":"init","setup":{"lock":"memory"}}` + "\n" +
			`{"id":2,"op":"try"}`, `{"op":"work","ms":-1}`, `{"client":"x","op":"close"}`, "nil", `{"id":1e30}`, "\xff", `[1]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = Serve(ctx, strings.NewReader(in), &out, singleLock(&stubLocker{}))
		for d := json.NewDecoder(&out); d.More(); {
			var r Reply
			if err := d.Decode(&r); err != nil || r.Type != "ok" && r.Type != "fail" && r.Type != "info" {
				t.Fatalf("reply to %q: %+v, %v", in, r, err)
			}
		}
	})
}

// stubEnder is a lock that ends waits when it is closed.
type stubEnder struct {
	stubLocker
	after time.Duration
}

func (s *stubEnder) Operate(_ context.Context, r Request) (Grant, error) {
	s.after = r.Close
	return s.grant, s.err
}

// TestAcquireUntilClosed: an acquire with a time after which the lock is closed is executed only by a lock that states
// that it ends waits.
func TestAcquireUntilClosed(t *testing.T) {
	r := Request{ID: 1, Op: "acquire", Acquire: Acquire{Wait: time.Second}, Close: time.Millisecond}
	l := &stubEnder{stubLocker: stubLocker{err: ErrNotHeld}}
	n := opened(t, l)
	if reply := n.handle(t.Context(), r); reply.Code != "unknown-op" || l.after != 0 {
		t.Errorf("without the promise: %+v", reply)
	}
	n.row.Can = n.row.Can.With(promise.CloseEndsWaits)
	if reply := n.handle(t.Context(), r); reply.Type != "fail" || l.after != time.Millisecond || len(l.asks) > 0 {
		t.Errorf("%+v", reply)
	}
	n.locker = &stubLocker{}
	if reply := n.handle(t.Context(), r); reply.Code != "unknown-op" {
		t.Errorf("without the operation: %+v", reply)
	}
}
