package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Devtools drives a browser through the Chrome DevTools Protocol, on a pipe: a message is JSON and a zero byte.
type Devtools struct {
	in      *os.File
	replies *os.File
	out     *bufio.Reader // of replies
	id      int
	session string   // of the open page
	target  string   // the open page; empty: none
	Console []string // what the open page wrote to its console, as messages of the protocol
	Loaded  []string // addresses that the open page has requested
}

// message is a request, a reply or an event of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// Options are how a test opens a page.
type Options struct {
	Dark  bool
	Width int // of the window; 0: 1280
}

// running serves all tests, because a browser takes a second of CPU time to start; nil: none is running. TestMain ends
// it.
//
//nolint:gochecknoglobals // of the tests of one package
var running struct {
	sync.Mutex
	*Devtools
	end func() error
}

// Start starts a browser, or takes an earlier test's if it has passed. Tests take turns, and each may use it
// for browserLimit.
func Start(t *testing.T) *Devtools {
	t.Helper()
	running.Lock()
	t.Cleanup(running.Unlock)
	if running.Devtools == nil {
		running.Devtools, running.end = start(t)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if err := End(); err != nil {
			t.Error(err)
		}
	})
	if err := running.replies.SetReadDeadline(time.Now().Add(browserLimit)); err != nil {
		t.Fatal(err)
	}
	return running.Devtools
}

// start starts a browser.
func start(t *testing.T) (d *Devtools, end func() error) {
	t.Helper()
	cmd, remove, err := newBrowser(context.Background(), "--remote-debugging-pipe", "about:blank")
	if err != nil {
		t.Fatal(err)
	}
	if remove == nil {
		t.Skip(noBrowser)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the pipe is the file descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, remove()))
	}
	theirIn.Close()
	theirOut.Close()
	return &Devtools{in: in, replies: out, out: bufio.NewReader(out)}, func() error {
		in.Close()
		out.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return remove()
	}
}

// End ends the browser of the tests, if one is running.
func End() error {
	if running.Devtools == nil {
		return nil
	}
	running.Devtools = nil
	return running.end()
}

// call sends a request and waits for its reply; it keeps the output of the page to its console in between.
func (d *Devtools) call(t *testing.T, method string, params, result any) {
	t.Helper()
	d.id++
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(message{ID: d.id, Method: method, Session: d.session, Params: text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(text, 0)); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	for {
		line, err := d.out.ReadBytes(0)
		if err != nil {
			t.Fatalf("%s: the browser ended: %v", method, err)
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if m.Method == "Runtime.consoleAPICalled" || m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" {
			d.Console = append(d.Console, string(m.Params))
		}
		if m.Method == "Network.requestWillBeSent" {
			var sent struct{ Request struct{ URL string } }
			if err := json.Unmarshal(m.Params, &sent); err != nil {
				t.Fatalf("%s: %v", m.Method, err)
			}
			d.Loaded = append(d.Loaded, sent.Request.URL)
		}
		if m.ID != d.id {
			continue
		}
		if m.Error != nil {
			t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

type params map[string]any

// Open opens a page of that text and waits until its script, if it has one, is ready.
func (d *Devtools) Open(t *testing.T, page string, o Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	d.OpenFile(t, path, o)
}

// OpenFile is Open for a page in a file, whose path may end with a query.
func (d *Devtools) OpenFile(t *testing.T, path string, o Options) {
	t.Helper()
	d.session, d.Console, d.Loaded = "", nil, nil
	if d.target != "" {
		d.call(t, "Target.closeTarget", params{"targetId": d.target}, nil)
	}
	var target struct{ TargetID string }
	d.call(t, "Target.createTarget", params{"url": "about:blank"}, &target)
	d.target = target.TargetID
	var attached struct{ SessionID string }
	d.call(t, "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	d.session = attached.SessionID
	width := 1280
	if o.Width > 0 {
		width = o.Width
	}
	d.call(t, "Emulation.setDeviceMetricsOverride", params{"width": width, "height": 1600, "deviceScaleFactor": 1,
		"mobile": false}, nil)
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	d.call(t, "Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme",
		"value": scheme}}}, nil)
	d.call(t, "Runtime.enable", params{}, nil)
	d.call(t, "Log.enable", params{}, nil)
	d.call(t, "Network.enable", params{}, nil)
	d.call(t, "Page.enable", params{}, nil)
	d.call(t, "Page.navigate", params{"url": "file://" + strings.ReplaceAll(path, "#", "%23")}, nil) // as in test#01
	for ready := false; !ready; {
		d.Run(t, `
			for (let frames = 0; frames < 100; frames++) {
				if (location.href !== 'about:blank' && document.readyState === 'complete' &&
					(!document.getElementById('data') || document.documentElement.dataset.ready)) return true;
				await frame();
			}
			return false`, &ready)
		for _, text := range d.Console {
			if strings.Contains(text, "exceptionDetails") {
				t.Fatalf("the script of the page failed: %s", text)
			}
		}
	}
}

// Run evaluates the body of an asynchronous function in the page and decodes its result.
func (d *Devtools) Run(t *testing.T, body string, result any) {
	t.Helper()
	script := `(async function () {
		const press = (el, key) => el.dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true,
			cancelable: true}));
		const frame = () => new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 0); }); });
		const $ = (q) => document.querySelector(q);
		` + body + `
	})()`
	var reply struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	d.call(t, "Runtime.evaluate", params{"expression": script, "awaitPromise": true, "returnByValue": true,
		"userGesture": true}, &reply)
	if reply.ExceptionDetails != nil {
		t.Fatalf("in the page: %s", reply.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result.Value, result); err != nil {
		t.Fatalf("%v: %s", err, reply.Result.Value)
	}
}
