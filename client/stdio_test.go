package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswersAreMatchedByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		a, b := p.Client("a"), p.Client("b")
		got := make(chan string, 2)
		ask := func(c *StdioClient, key string) {
			reply, err := c.Do(t.Context(), Request{Op: "acquire", Key: key})
			got <- fmt.Sprint(key, " ", reply.Token, " ", err)
		}
		go ask(a, "first")
		one, _ := p.hear()
		go ask(b, "second")
		two, _ := p.hear()
		if one.Client != "a" || two.Client != "b" || one.ID == two.ID {
			t.Errorf("asked %+v and %+v", one, two)
		}
		p.say(fmt.Sprintf(`{"id":%d,"type":"ok","token":2,"client":"b"}`, two.ID)) // the later one first: a is slow
		if text := <-got; text != "second 2 <nil>" {
			t.Error(text)
		}
		p.say(fmt.Sprintf(`{"id":%d,"type":"ok","token":1,"client":"a"}`, one.ID))
		if text := <-got; text != "first 1 <nil>" {
			t.Error(text)
		}
		_ = p.proc.Kill()
		drain(a)
		drain(b)
	})
}

func TestLateAnswerBecomesANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		c := p.Client("")
		asked := make(chan Request, 1)
		go func() {
			r, _ := p.hear()
			asked <- r
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, Request{Op: "work", MS: 5}); !errors.Is(err, ErrTimeout) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v, want ErrLate", err)
		}
		r := <-asked
		p.say(fmt.Sprintf(`{"id":%d,"type":"ok","key":"k"}`, r.ID))
		want := Reply{ID: r.ID, Type: "ok", Event: EventLate, Op: "work", Key: "k"}
		if diff := cmp.Diff(want, <-c.Notices(), cmp.AllowUnexported(Reply{})); diff != "" {
			t.Errorf("notice (-want +got):\n%s", diff)
		}
		_ = p.proc.Kill()
		drain(c)
	})
}

// TestNonsense: whatever a client says, the harness goes on; who babbles is
// killed, asked no more, and its notices end.
func TestNonsense(t *testing.T) {
	for _, test := range []struct{ name, says, why string }{
		{"not JSON", "hello", "invalid character"},
		{"a number", "42", "cannot unmarshal"},
		{"no type", `{"id":1}`, "type is not ok, fail or info"},
		{"unknown type", `{"id":1,"type":"maybe"}`, "type is not ok, fail or info"},
		{"wrong kind of field", `{"id":"one","type":"ok"}`, "cannot unmarshal"},
		{"negative token", `{"id":1,"type":"ok","token":-1}`, "cannot unmarshal"},
		{"nobody asked", `{"id":99,"type":"ok"}`, "nobody asked for id 99"},
		{"no id", `{"type":"ok"}`, "nobody asked for id 0"},
		{"answered twice", `{"id":1,"type":"ok"}` + "\n" + `{"id":1,"type":"ok"}`, "nobody asked for id 1"},
		{"unknown client", `{"event":"lost","client":"zoe","key":"k"}`, `it has no client "zoe"`},
		{"unknown event", `{"event":"bored","key":"k"}`, "event is not lost or renewed"},
		{"an event that is the harness's own", `{"event":"late","key":"k"}`, "event is not lost or renewed"},
		{"a line of 2 MiB", strings.Repeat("x", 2<<20), "a line of more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPuppet()
				c := p.Client("")
				go func() {
					p.hear()
					p.say(test.says)
				}()
				_, err := c.Do(t.Context(), Request{Op: "acquire"})
				if strings.HasPrefix(test.name, "answered twice") && err == nil {
					drain(c)
					_, err = c.Do(t.Context(), Request{Op: "release"})
				}
				if !errors.Is(err, ErrProtocol) || !strings.Contains(fmt.Sprint(err), test.why) {
					t.Errorf("Do = %v, want ErrBabble: %s", err, test.why)
				}
				if len(fmt.Sprint(err)) > 400 {
					t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
				}
				drain(c)
				if !p.proc.killed() {
					t.Error("it was not killed")
				}
				if _, err := c.Do(t.Context(), Request{Op: "acquire"}); !errors.Is(err, ErrProtocol) {
					t.Errorf("asked again: %v, want ErrBabble", err)
				}
				if err := c.Close(t.Context()); !errors.Is(err, ErrProtocol) {
					t.Errorf("Close = %v, want ErrBabble", err)
				}
			})
		})
	}
}

func TestBlankLinesAndUnknownFieldsAreForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		c := p.Client("")
		go func() {
			r, _ := p.hear()
			p.say(fmt.Sprintf("\n  \r\n"+`{"id":%d,"type":"fail","code":"held","mood":"bad"}`+"\r", r.ID))
		}()
		reply, err := c.Do(t.Context(), Request{Op: "try"})
		if err != nil || reply.Type != "fail" || reply.Code != "held" {
			t.Errorf("Do = %+v, %v", reply, err)
		}
		_ = p.proc.Kill()
		drain(c)
	})
}

// TestClientThatReadsNothing: neither its own requests nor the end of the run
// wait for a client that stands still with a full pipe.
func TestClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		c := p.Client("")
		for range 20 { // more than are queued
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Do(ctx, Request{Op: "renew"}); !errors.Is(err, ErrTimeout) {
				t.Fatalf("Do = %v, want ErrLate", err)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, ErrTimeout) {
			t.Errorf("Close = %v, want ErrLate", err)
		}
		if !p.proc.killed() {
			t.Error("it was not killed")
		}
		drain(c)
	})
}

// TestUnheardNoticesDoNotKeepClose: a client may talk for ever to nobody.
func TestUnheardNoticesDoNotKeepClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		c := p.Client("")
		go func() {
			for range 3 * noticeQueue {
				p.say(`{"event":"renewed","key":"k"}`)
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, ErrTimeout) {
			t.Errorf("Close = %v, want ErrLate", err)
		}
		if got := len(drain(c)); got != noticeQueue {
			t.Errorf("%d notices kept, want %d", got, noticeQueue)
		}
	})
}

func TestCloseOfOneLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPuppet()
		a, b := p.Client("a"), p.Client("b")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for r, ok := p.hear(); ok; r, ok = p.hear() {
				p.say(fmt.Sprintf(`{"id":%d,"type":"ok"}`, r.ID))
			}
			_ = p.says.Close()
		}()
		for range 2 { // the second time is no second client
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Do(t.Context(), Request{Op: "acquire"}); err != nil {
			t.Errorf("b was closed with a: %v", err)
		}
		for range 2 {
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		<-ended
		if late := p.Client("c"); len(drain(late)) != 0 {
			t.Error("a client of an ended process has notices")
		}
	})
}

// FuzzStdio feeds the harness's end whatever a client may say.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", `{"id":1,"type":"ok"}`, `{"id":1,"type":"ok","valid_ms":1e308,"mono_ns":-5}`, `{"event":"lost"}`,
		`{"event":"renewed","client":"x"}`, `{"id":1,"type":"o`, "nil", `{"id":9223372036854775808}`, "\xff\xfe{}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, says string) {
		p := newPuppet()
		c := p.Client("")
		go func() {
			p.hear()
			p.say(says)
			_ = p.says.Close()
		}()
		notices := make(chan []Reply)
		go func() { notices <- drain(c) }()
		reply, err := c.Do(t.Context(), Request{Op: "acquire"})
		for _, r := range append(<-notices, reply) {
			if v := r.ValidFor(time.Second, 1<<40); v > century || v < -2*century {
				t.Errorf("%+v is valid for %v", r, v)
			}
		}
		switch {
		case err == nil && reply.Type != "ok" && reply.Type != "fail" && reply.Type != "info":
			t.Errorf("%q was taken for an answer: %+v", says, reply)
		case err != nil && !errors.Is(err, ErrExited) && !errors.Is(err, ErrProtocol):
			t.Errorf("%q: %v", says, err)
		}
	})
}
