package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/testkit/workloadtest"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// TestListenRecordsNotices: with their hold and validity.
func TestListenRecordsNotices(t *testing.T) {
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	s := session.New(c, tape, 2, 5, func() int64 { return 1000 + int64(time.Second) })
	c.Notified <- client.Reply{Event: "renewed", Key: "k", Owner: "o", ValidMS: 3000, MonoNS: 1000}
	c.Notified <- client.Reply{Event: "renewed", Key: "k", Owner: "o", ValidMS: 3000} // of unknown age
	c.Notified <- client.Reply{Event: "lost", Key: "k", Owner: "o"}
	c.Notified <- client.Reply{Event: client.EventLate, Op: "work", Type: "ok"}
	s.Closing()
	_ = c.Close(t.Context())
	s.Listen()
	if s.Alive() {
		t.Error("alive after the end of its notices")
	}
	type line struct {
		F, Key, Owner string
		Valid         time.Duration
	}
	var got []line
	for _, e := range tape.Events {
		if e.Process != 2 || e.Type != history.Info {
			t.Errorf("%+v", e)
		}
		got = append(got, line{e.F, e.Key, e.Value.Owner, e.Value.Valid})
	}
	want := []line{{"renewed", "k", "o", 2 * time.Second}, {"renewed", "k", "o", 0}, {"lost", "k", "o", 0},
		{"late-work", "", "", 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNoticesThatAreReadLate: a notice has its own time, and one about a hold comes after its grant, in whichever order
// the harness reads them, also if the workload has named the owner.
func TestNoticesThatAreReadLate(t *testing.T) {
	for _, owner := range []func(*session.Session) string{
		(*session.Session).NewOwner, func(*session.Session) string { return "" },
	} {
		testNoticesThatAreReadLate(t, owner)
	}
}

func testNoticesThatAreReadLate(t *testing.T, owner func(*session.Session) string) {
	t.Helper()
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	now := int64(time.Hour)
	s := session.New(c, tape, 0, 1, func() int64 { return now })
	listened := make(chan struct{})
	c.Script = func(_ int, r client.Request) (*client.Reply, error) {
		now += int64(4 * time.Second)
		c.Notified <- client.Reply{Event: "lost", Key: "k", Owner: r.Owner, MonoNS: now - int64(3*time.Second)}
		c.Notified <- client.Reply{Event: "lost", Key: "k", Owner: "other", MonoNS: 5} // of another clock
		_ = c.Close(t.Context())
		<-listened
		return &client.Reply{Type: "ok"}, nil
	}
	go func() { s.Listen(); close(listened) }()
	s.Closing()
	s.Acquire(t.Context(), client.Acquire{Key: "k", Owner: owner(s), Wait: time.Second})
	type line struct {
		F, Owner string
		Age      time.Duration
	}
	var got []line
	for _, e := range tape.Events {
		if e.Type != history.Invoke {
			got = append(got, line{e.F, e.Value.Owner, e.Value.Age})
		}
	}
	want := []line{{"lost", "other", 0}, {"acquire", "c0-1", 0}, {"lost", "c0-1", 3 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAbandonedIsNotATimeout: a run that is interrupted stops waiting for replies before their time.
func TestAbandonedIsNotATimeout(t *testing.T) {
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	session.New(workloadtest.Silent{Client: c}, tape, 0, 1, client.MonotonicNow).Acquire(ctx, client.Acquire{Key: "k", Wait: time.Hour})
	if got := tape.Words()[1]; got != "0 acquire info client-error" {
		t.Error(got)
	}
}

// TestUndoneIsRecorded: of an acquire whose outcome is known.
func TestUndoneIsRecorded(t *testing.T) {
	for _, reply := range []client.Reply{
		{Type: "fail", Undone: true}, {Type: "fail"}, {Type: "ok", Undone: true}, {Type: "info", Undone: true},
	} {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(int, client.Request) (*client.Reply, error) { return &reply, nil }
		session.New(c, tape, 0, 1, client.MonotonicNow).Acquire(t.Context(), client.Acquire{Key: "k"})
		if got, want := tape.Events[1].Value.Undone, reply.Type != "info" && reply.Undone; got != want {
			t.Errorf("%+v is recorded as undone %v", reply, got)
		}
	}
}

// TestCrashIsRecordedOnce: whether a reply or the end of the notices shows it, and not if the client was closed.
func TestCrashIsRecordedOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		steps []string
		want  int
	}{
		{"idle", []string{"end"}, 1},
		{"acquire, then end of notices", []string{"acquire", "end"}, 1},
		{"end of notices, then acquire", []string{"end", "acquire"}, 1},
		{"two acquires", []string{"acquire", "acquire", "end"}, 1},
		{"while it is closed", []string{"closing", "acquire", "end"}, 0},
		{"before it is closed", []string{"acquire", "closing", "end"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
			c.Script = func(int, client.Request) (*client.Reply, error) { return nil, client.ErrExited }
			s := session.New(c, tape, 0, 1, client.MonotonicNow)
			for _, step := range test.steps {
				switch step {
				case "acquire":
					if _, got := s.Acquire(t.Context(), client.Acquire{Key: "k", Wait: time.Second}); got != history.Info {
						t.Errorf("acquire is %v", got)
					}
				case "end":
					_ = c.Close(t.Context())
					s.Listen()
				case "closing":
					s.Closing()
				}
			}
			if got := strings.Count(strings.Join(tape.Words(), "\n"), "crash"); got != test.want {
				t.Errorf("%d crashes, want %d: %v", got, test.want, tape.Words())
			}
			if s.Alive() {
				t.Error("it is alive")
			}
		})
	}
}

// TestCrashHasItsReason: the history says who ended a client, and the reason comes from the client if no request was
// in flight.
func TestCrashHasItsReason(t *testing.T) {
	for _, test := range []struct {
		err  error
		want history.Error
	}{
		{client.ErrKilled, history.Error{Code: history.CodeKilled, Text: client.ErrKilled.Error()}},
		{fmt.Errorf("%w: exit status 3", client.ErrExited), history.Error{Code: history.CodeExited, Text: "exit status 3"}},
		{fmt.Errorf("%w: output line 7", client.ErrProtocol),
			history.Error{Code: history.CodeProtocol, Text: "output line 7"}},
	} {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		_ = c.Close(t.Context())
		session.New(explained{c, test.err}, tape, 0, 1, client.MonotonicNow).Listen()
		if last := tape.Events[len(tape.Events)-1]; last.F != history.Crash || *last.Error != test.want {
			t.Errorf("%+v, want a crash with %v", last, test.want)
		}
		if h := tape.History(t); len(h.Exits) != 1 || h.Exits[0].Error != test.want {
			t.Errorf("exits %+v", h.Exits)
		}
	}
}

// explained is a client that knows why it ended.
type explained struct {
	*workloadtest.Client
	err error
}

func (c explained) Err() error { return c.err }

// TestCrashCountsFromTheKill: a killed process executes nothing while it takes seconds to exit.
func TestCrashCountsFromTheKill(t *testing.T) {
	const ago = 3 * time.Second
	for killed, want := range map[time.Time]time.Duration{{}: 0, time.Now().Add(-ago): ago} {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		_ = c.Close(t.Context())
		session.New(killedAt{c, killed}, tape, 0, 1, client.MonotonicNow).Listen()
		age := time.Duration(0)
		if v := tape.Events[len(tape.Events)-1].Value; v != nil {
			age = v.Age
		}
		if age < want || want == 0 && age != 0 {
			t.Errorf("killed at %v: a crash %v ago, want at least %v", killed, age, want)
		}
	}
}

type killedAt struct {
	*workloadtest.Client
	at time.Time
}

func (c killedAt) Killed() time.Time { return c.at }

func TestProcessIsRetired(t *testing.T) {
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	c.Script = func(int, client.Request) (*client.Reply, error) { return &client.Reply{Type: "info"}, nil }
	s := session.New(c, tape, 3, 10, client.MonotonicNow)
	for n := range 4 {
		if got := s.Process(); got != history.Process(3+10*n) || got.Client(10) != 3 {
			t.Errorf("after %d unknown outcomes the process is %d", n, got)
		}
		s.Release(t.Context(), session.Hold{Key: "k", Owner: "o"})
	}
	tape.History(t)
}

// TestReplyTimeout: after how long the outcome of each operation is unknown.
func TestReplyTimeout(t *testing.T) {
	for _, test := range []struct {
		op   string
		do   func(s *session.Session) history.Type
		want time.Duration
	}{
		{"acquire", func(s *session.Session) history.Type {
			_, got := s.Acquire(context.Background(), client.Acquire{Key: "k", Wait: 3 * time.Second})
			return got
		}, 8 * time.Second},
		{"work", func(s *session.Session) history.Type {
			return s.Work(context.Background(), session.Hold{}, time.Second)
		},
			61 * time.Second},
		{"release", func(s *session.Session) history.Type { return s.Release(context.Background(), session.Hold{}).Outcome }, 15 * time.Second},
	} {
		synctest.Test(t, func(*testing.T) {
			c := workloadtest.NewClient(workloadtest.NewLock())
			tape := workloadtest.NewTape()
			s := session.New(workloadtest.Silent{Client: c}, tape, 0, 1, client.MonotonicNow)
			start := time.Now()
			if got := test.do(s); got != history.Info {
				t.Errorf("%s without a reply is %v", test.op, got)
			}
			if took := time.Since(start); took != test.want {
				t.Errorf("%s times out after %v, want %v", test.op, took, test.want)
			}
			if last := tape.Words()[1]; last != "0 "+test.op+" info client-timeout" {
				t.Error(last)
			}
		})
	}
}

func TestRecordedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
		c.Script = func(int, client.Request) (*client.Reply, error) {
			<-time.After(300 * time.Millisecond)
			return &client.Reply{Type: "ok", Token: 7, Count: 2, ValidMS: 2000}, nil
		}
		s := session.New(c, tape, 0, 1, func() int64 { return time.Now().UnixNano() })
		h, _ := s.Acquire(t.Context(), client.Acquire{Key: "k", Lease: 2 * time.Second, Wait: time.Second})
		held := session.Hold{Key: "k", Owner: "c0-1", Token: 7, Lease: 2 * time.Second, Valid: 1700 * time.Millisecond}
		if diff := cmp.Diff(held, h); diff != "" {
			t.Errorf("hold (-want +got):\n%s", diff)
		}
		want := &history.Value{Owner: "c0-1", Token: 7, Count: 2, Valid: 1700 * time.Millisecond}
		if diff := cmp.Diff(want, tape.Events[1].Value); diff != "" {
			t.Errorf("value (-want +got):\n%s", diff)
		}
		invoked := &history.Value{Owner: "c0-1", Lease: 2 * time.Second, Wait: time.Second}
		if diff := cmp.Diff(invoked, tape.Events[0].Value); diff != "" {
			t.Errorf("invoked (-want +got):\n%s", diff)
		}
	})
}

// TestSessionWithoutLeases: neither the lock nor the history is given a lease that the lock would ignore.
func TestSessionWithoutLeases(t *testing.T) {
	tape, c := workloadtest.NewTape(), workloadtest.NewClient(workloadtest.NewLock())
	s := session.New(c, tape, 0, 1, client.MonotonicNow)
	s.WithoutLeases()
	s.Acquire(t.Context(), client.Acquire{Key: "k", Lease: time.Second, Wait: time.Second})
	if sent, recorded := c.Requests[0].Lease, tape.Events[0].Value.Lease; sent != 0 || recorded != 0 {
		t.Errorf("a lease of %v was requested, and %v recorded", sent, recorded)
	}
}
