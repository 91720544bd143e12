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

func TestRepliesAreMatchedByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		a, b := p.Client("a"), p.Client("b")
		got := make(chan string, 2)
		acquire := func(c *StdioClient, key string) {
			reply, err := c.Do(t.Context(), Request{Op: "acquire", Acquire: Acquire{Key: key}})
			got <- fmt.Sprint(key, " ", reply.Token, " ", err)
		}
		go acquire(a, "first")
		one, _ := p.read()
		go acquire(b, "second")
		two, _ := p.read()
		if one.Client != "a" || two.Client != "b" || one.ID == two.ID {
			t.Errorf("requests %+v and %+v", one, two)
		}
		p.print(fmt.Sprintf(`{"id":%d,"type":"ok","token":2,"client":"b"}`, two.ID)) // out of order
		if text := <-got; text != "second 2 <nil>" {
			t.Error(text)
		}
		p.print(fmt.Sprintf(`{"id":%d,"type":"ok","token":1,"client":"a"}`, one.ID))
		if text := <-got; text != "first 1 <nil>" {
			t.Error(text)
		}
		_ = p.proc.Kill()
		drain(a)
		drain(b)
	})
}

func TestLateReplyBecomesANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		c := p.Client("")
		requests := make(chan Request, 1)
		go func() {
			r, _ := p.read()
			requests <- r
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(ctx, Request{Op: "work", Work: 5 * time.Millisecond}); !errors.Is(err, ErrTimeout) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v, want ErrTimeout", err)
		}
		r := <-requests
		p.print(fmt.Sprintf(`{"id":%d,"type":"ok","key":"k"}`, r.ID))
		want := Reply{ID: r.ID, Type: "ok", Event: EventLate, Op: "work", Key: "k"}
		if diff := cmp.Diff(want, <-c.Notices(), cmp.AllowUnexported(Reply{})); diff != "" {
			t.Errorf("notice (-want +got):\n%s", diff)
		}
		_ = p.proc.Kill()
		drain(c)
	})
}

// TestProtocolErrors: a client that violates the protocol is killed, every later request fails with the same error, its
// notices end, and the error names the expected form.
func TestProtocolErrors(t *testing.T) {
	for _, test := range []struct{ name, output, want string }{
		{"not JSON", "hello",
			"output line 1: expected one JSON object per line: invalid character 'h' looking for beginning of value " +
				`in "hello"`},
		{"half a line", `{"id":1,"ty`, "expected one JSON object per line: unexpected end of JSON input"},
		{"a number", "42", "expected a JSON object, got a JSON number"},
		{"no type", `{"id":1}`, `field type: expected "ok", "fail" or "info", got ""`},
		{"unknown type", `{"id":1,"type":"maybe"}`, `field type: expected "ok", "fail" or "info", got "maybe"`},
		{"wrong kind of field", `{"id":"one","type":"ok"}`, "field id: expected an integer, got string"},
		{"a string for a number", `{"id":1,"type":"ok","valid_ms":"5"}`, "field valid_ms: expected a number, got string"},
		{"negative token", `{"id":1,"type":"ok","token":-1}`,
			"field token: expected an integer from 0 to 2^64-1, got number -1"},
		{"unknown id", `{"id":99,"type":"ok"}`, "field id: expected one of the open requests [1], got 99"},
		{"no id", `{"type":"ok"}`, "field id: expected one of the open requests [1], got 0"},
		{"two replies", `{"id":1,"type":"ok"}` + "\n" + `{"id":1,"type":"ok"}`,
			"output line 2: field id: expected one of the open requests [], got 1"},
		{"unknown client", `{"event":"lost","client":"zoe","key":"k"}`,
			`field client: expected one named in a request, got "zoe"`},
		{"unknown event", `{"event":"idle","key":"k"}`, `field event: expected "lost" or "renewed", got "idle"`},
		{"reserved event", `{"event":"late","key":"k"}`, `field event: expected "lost" or "renewed", got "late"`},
		{"a line of 2 MiB", strings.Repeat("x", 2<<20), "output line 1: expected at most 1048576 bytes, got more"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newScriptedProcess()
				c := p.Client("")
				go func() {
					p.read()
					p.print(test.output)
				}()
				_, err := c.Do(t.Context(), Request{Op: "acquire"})
				if test.name == "two replies" && err == nil {
					drain(c)
					_, err = c.Do(t.Context(), Request{Op: "release"})
				}
				if !errors.Is(err, ErrProtocol) || !strings.Contains(fmt.Sprint(err), test.want) {
					t.Errorf("Do = %v, want ErrProtocol: %s", err, test.want)
				}
				if len(fmt.Sprint(err)) > 400 {
					t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
				}
				drain(c)
				if !p.proc.killed() {
					t.Error("the process was not killed")
				}
				if _, err := c.Do(t.Context(), Request{Op: "acquire"}); !errors.Is(err, ErrProtocol) {
					t.Errorf("next request: %v, want ErrProtocol", err)
				}
				if err := c.Close(t.Context()); !errors.Is(err, ErrProtocol) {
					t.Errorf("Close = %v, want ErrProtocol", err)
				}
			})
		})
	}
}

func TestBlankLinesAndUnknownFieldsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		c := p.Client("")
		go func() {
			r, _ := p.read()
			p.print(fmt.Sprintf("\n  \r\n"+`{"id":%d,"type":"fail","code":"held","mood":"bad"}`+"\r", r.ID))
		}()
		reply, err := c.Do(t.Context(), Request{Op: "try"})
		if err != nil || reply.Type != "fail" || reply.Code != "held" {
			t.Errorf("Do = %+v, %v", reply, err)
		}
		_ = p.proc.Kill()
		drain(c)
	})
}

// TestClientThatReadsNothing: neither Do nor Close waits for a stopped client whose input pipe is full.
func TestClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		c := p.Client("")
		for range 20 { // more than are queued
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Do(ctx, Request{Op: "renew"}); !errors.Is(err, ErrTimeout) {
				t.Fatalf("Do = %v, want ErrTimeout", err)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, ErrTimeout) {
			t.Errorf("Close = %v, want ErrTimeout", err)
		}
		if !p.proc.killed() {
			t.Error("the process was not killed")
		}
		drain(c)
	})
}

// TestUnreadNoticesDoNotBlockClose: a client may send notices that are never read.
func TestUnreadNoticesDoNotBlockClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		c := p.Client("")
		go func() {
			for range 3 * noticeQueue {
				p.print(`{"event":"renewed","key":"k"}`)
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); !errors.Is(err, ErrTimeout) {
			t.Errorf("Close = %v, want ErrTimeout", err)
		}
		if got := len(drain(c)); got != noticeQueue {
			t.Errorf("%d notices kept, want %d", got, noticeQueue)
		}
	})
}

func TestCloseOfOneLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newScriptedProcess()
		a, b := p.Client("a"), p.Client("b")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for r, ok := p.read(); ok; r, ok = p.read() {
				p.print(fmt.Sprintf(`{"id":%d,"type":"ok"}`, r.ID))
			}
			_ = p.out.Close()
		}()
		for range 2 { // Close may be repeated
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

// FuzzStdio feeds arbitrary output of a client to the harness's end.
func FuzzStdio(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", `{"id":1,"type":"ok"}`, `{"id":1,"type":"ok","valid_ms":1e308,"mono_ns":-5}`, `{"event":"lost"}`,
		`{"event":"renewed","client":"x"}`, `{"id":1,"type":"o`, "nil", `{"id":9223372036854775808}`, "\xff\xfe{}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		p := newScriptedProcess()
		c := p.Client("")
		go func() {
			p.read()
			p.print(output)
			_ = p.out.Close()
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
			t.Errorf("%q was accepted as a reply: %+v", output, reply)
		case err != nil && !errors.Is(err, ErrExited) && !errors.Is(err, ErrProtocol):
			t.Errorf("%q: %v", output, err)
		}
	})
}
